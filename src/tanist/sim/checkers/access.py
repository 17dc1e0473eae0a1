"""Who may do what (S29), judged from the frames between the subjects of a run and the nodes.

A node carries a request out only if

* its client has authenticated on that connection, by a credential that stood at a moment of the authentication, and
  that lasts; and
* the entries allowed it at a moment between its arrival and its answer.

It denies one only if the entries did not allow it at such a moment. What is committed is seen or known too: a record
of a subject that is committed was allowed at a moment between its arrival at its broker and now, and so was an entry
that a subject has made, whether an answer came or not.

The entries *at a moment* are those of the metadata that the node had applied then. Nothing stronger holds: a broker
that is cut off from the controllers goes on with the entries that it knows, as Apache Kafka's does, and S16 says that
these are a prefix of the committed ones. So the moments run from what it had applied when the request arrived to what
it has applied when the client reads the answer; requests that are forwarded are the controller's, so theirs begin with
what any node had applied that took itself for the active controller when the request arrived, and end with all that is
committed. How far a node may be behind is not this property's: L2 ends it when the faults are over, and L16 asks
everybody everything then.

Owns the talks of all connections of the subjects. Must not ask the product's authorizer or its SASL machines: the
decisions are `AccessOracle`'s, and the proofs are checked in `logins`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NoReturn

from tanist.broker.node import Node
from tanist.sim.access_oracle import Access, AccessOracle, Need
from tanist.sim.checkers.checkers import Checkers
from tanist.sim.checkers.logins import Believed, Login, Moment
from tanist.sim.checkers.violation import Violation
from tanist.sim.oracle import PartitionOracle
from tanist.sim.secured import NOBODY, SUBJECTS, SUPER_USERS, TOPICS
from tanist.sim.world.connection import SimConnection
from tanist.sim.world.world import Host, World
from tanist.wire.acls import CLUSTER_NAME, AclOperation, ResourceType
from tanist.wire.apis import ApiKey
from tanist.wire.batch import decode_batch, iterate_batches
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import correlation_id_of, decode_request, decode_response, parse_request_header
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tanist.wire.metadata import AccessControlEntryRecord
from tanist.wire.schema import MetadataRecord

_O, _R = AclOperation, ResourceType
_WATCHED: Final = frozenset((*SUBJECTS, NOBODY))
_FORWARDED: Final = frozenset((ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS))
_PASSED_ON: Final = "127.0.0.1"
"""The host of who asks by a broker: an envelope has an address, and hosts of the simulator have none."""
DENIALS: Final = frozenset(
    (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    )
)
DESCRIBE_ACLS: Final = Need(_O.DESCRIBE, _R.CLUSTER, CLUSTER_NAME)
ALTER_ACLS: Final = Need(_O.ALTER, _R.CLUSTER, CLUSTER_NAME)


class Outcome(NamedTuple):
    """What an answer says of one thing that a request needs."""

    need: Need
    denied: bool | None
    """None: an unexpected error ended the request, so the answer does not say."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A request, as it arrived."""

    api_key: int
    version: int
    request: Any
    client: str
    host: Host
    node: Node
    since: int
    """The metadata offset that was applied by who decides."""
    believed: Believed | None
    now_ms: int

    @property
    def what(self) -> str:
        who = self.client if self.believed is None else self.believed.principal
        return f"{ApiKey(self.api_key).name} of {who} at {self.host.name}"


@dataclass(slots=True)
class _Talk:
    """One connection of a subject."""

    believed: Believed | None = None
    login: Login | None = None
    wanted: str = ""
    """The mechanism of the handshake under way."""
    asked: dict[int, _Asked] = field(default_factory=dict)


class AccessChecks:
    """Of one run. Reads each frame where it arrives, before the process does."""

    def __init__(self, world: World, checkers: Checkers) -> None:
        self._world = world
        self._metadata = checkers.metadata
        self.oracle = AccessOracle(SUPER_USERS)
        self._hosts = {host.name: host for host in world.hosts.values()}
        self._talks: dict[SimConnection, _Talk] = {}
        """By the node's end."""
        self._writes: dict[bytes, _Asked] = {}
        """By the values of the records."""
        self._made: dict[str, _Asked] = {}
        """Requests that make entries, by the names of the resources, which no other request has."""
        self._metadata.on_record = self._committed
        leaders, given_up = checkers.replicas.leaders, checkers.replicas.elections
        self._on_written, self._on_given_up = leaders.on_committed, given_up.on_given_up
        leaders.on_committed, given_up.on_given_up = self._written, self._gave_up
        world.network.readers.append(self.read)

    def read(self, end: SimConnection, frame: memoryview) -> None:
        """One of `SimNetwork.readers`."""
        if end.accepted:
            if end.peer_host in _WATCHED:
                self._request(end, frame)
        elif end.host in _WATCHED and end.other is not None:
            talk = self._talks.get(end.other)
            asked = None if talk is None else talk.asked.pop(correlation_id_of(frame), None)
            if talk is not None and asked is not None:
                response = decode_response(asked.api_key, asked.version, memoryview(bytes(frame)))
                self._answer(talk, asked, response)

    # -- requests

    def _request(self, end: SimConnection, frame: memoryview) -> None:
        host = self._hosts[end.host]
        node = host.node
        if node is None:
            return
        talk = self._talks.setdefault(end, _Talk())
        header = parse_request_header(frame)
        request: Any = decode_request(header, memoryview(bytes(frame)))
        key = header.api_key
        since = self._least_of_controllers() if key in _FORWARDED else node.metadata.applied_offset
        asked = _Asked(
            key,
            header.api_version,
            request,
            end.peer_host,
            host,
            node,
            since,
            talk.believed,
            self._world.now_ms,
        )
        talk.asked[header.correlation_id] = asked
        if key == ApiKey.SASL_AUTHENTICATE and talk.login is not None:
            talk.login.shown(bytes(request.auth_bytes), self._moment(asked))
        elif key == ApiKey.PRODUCE:
            for value in _values(request):
                self._writes[value] = asked
        elif key == ApiKey.CREATE_ACLS:
            self._made.update({each.resource_name: asked for each in request.creations})

    def _least_of_controllers(self) -> int:
        """What any node has applied that takes itself for the active controller. A later one knows all that is
        committed by now."""
        applied = [node.metadata.applied_offset for node in self._world.nodes() if node.quorum.raft.is_leader]
        return min(applied, default=self._metadata.applied_offset)

    def _moment(self, asked: _Asked) -> Moment:
        """The broker's, now."""
        clock = asked.node.context.clock
        return Moment(asked.node.metadata.applied_offset, clock.now_ms(), clock.wall_ms())

    # -- answers

    def _answer(self, talk: _Talk, asked: _Asked, response: Any) -> None:
        key = asked.api_key
        if key == ApiKey.SASL_HANDSHAKE:
            if response.error_code == ErrorCode.NONE:
                talk.login = Login(asked.request.mechanism)
        elif key == ApiKey.SASL_AUTHENTICATE:
            if response.error_code == ErrorCode.NONE and talk.login is not None:
                self._accepted(talk, talk.login, asked, bytes(response.auth_bytes))
            else:
                talk.login = None
                self._world.counts["access: authentications refused"] += 1
        elif key != ApiKey.API_VERSIONS:
            self._check_session(asked)
            for outcome in OUTCOMES[key](asked.request, response):
                self._judge(asked, outcome)
            if key == ApiKey.DESCRIBE_ACLS and response.error_code == ErrorCode.NONE:
                self._check_described(asked, response)

    def _accepted(self, talk: _Talk, login: Login, asked: _Asked, token: bytes) -> None:
        believed = login.accepted(token, self._moment(asked), self.oracle)
        if isinstance(believed, str):
            self._fail(f"{asked.host.name} believes {asked.client}, though {believed}")
        if believed is not None:
            talk.believed, talk.login = believed, None
            kind = "again" if asked.believed is not None else f"by {login.mechanism}"
            self._world.counts[f"access: authenticated {kind}"] += 1

    def _check_session(self, asked: _Asked) -> None:
        believed = asked.believed
        if believed is None:
            self._fail(f"{asked.what} is answered, and it has not authenticated")
        if believed.until_ms is not None and asked.now_ms > believed.until_ms:
            late_ms = asked.now_ms - believed.until_ms
            self._fail(f"{asked.what} is answered, {late_ms} ms after its session had ended")

    def _judge(self, asked: _Asked, outcome: Outcome) -> None:
        """One of the states between has to say the same."""
        if outcome.denied is None:
            return
        said = {self._may(asked, access, outcome.need) for access in self._states(asked)}
        self._world.counts["access: denied" if outcome.denied else "access: allowed"] += 1
        self._world.counts["access: changed meanwhile"] += len(said) > 1
        if (not outcome.denied) not in said:
            verb = "denied, though it was allowed" if outcome.denied else "carried out, though nothing allowed it"
            self._fail(f"{asked.what} is {verb}: {_text(outcome.need)}")

    def _states(self, asked: _Asked) -> list[Access]:
        forwarded = asked.api_key in _FORWARDED
        until = self._metadata.applied_offset if forwarded else asked.node.metadata.applied_offset
        return list(self.oracle.between(asked.since, until))

    def _may(self, asked: _Asked, access: Access, need: Need) -> bool:
        host = _PASSED_ON if asked.api_key in _FORWARDED else asked.client
        return asked.believed is not None and self.oracle.may(access, asked.believed.principal, host, need)

    def _check_described(self, asked: _Asked, response: Any) -> None:
        described = {
            (each.resource_type, each.resource_name, each.pattern_type, acl.principal, acl.operation)
            for each in response.resources
            for acl in each.acls
        }
        for access in self._states(asked):
            entries = access.entries.values()
            if described == {
                (each.resource_type, each.resource_name, each.pattern_type, each.principal, each.operation)
                for each in entries
            }:
                return
        self._fail(f"{asked.what} gets entries that never stood together")

    # -- what is committed

    def _committed(self, offset: int, record: MetadataRecord) -> None:
        asked = self._made.get(record.resource_name) if isinstance(record, AccessControlEntryRecord) else None
        if asked is not None:
            self._check_effect(asked, ALTER_ACLS)
            self._world.counts["access: entries of subjects committed"] += 1
        self.oracle.replay(offset, record)

    def _written(self, oracle: PartitionOracle, offset: int, value: bytes) -> None:
        if oracle.name.startswith(f"{OFFSETS_TOPIC}-"):
            return
        topic = oracle.name.rpartition("-")[0]
        if topic in TOPICS:
            asked = self._writes.get(value)
            if asked is None:
                self._fail(f"{value!r} is committed in {topic}, and arrived nowhere")
            self._check_effect(asked, Need(_O.WRITE, _R.TOPIC, topic))
            self._world.counts["access: records of subjects committed"] += 1
        self._on_written(oracle, offset, value)

    def _gave_up(self, oracle: PartitionOracle) -> None:
        if not oracle.name.startswith(f"{OFFSETS_TOPIC}-"):
            self._on_given_up(oracle)

    def _check_effect(self, asked: _Asked, need: Need) -> None:
        if not any(self._may(asked, access, need) for access in self._states(asked)):
            self._fail(f"what {asked.what} wanted is committed, though nothing allowed it: {_text(need)}")

    def _fail(self, message: str) -> NoReturn:
        raise Violation("S29", self._world.now_us, message)


def _text(need: Need) -> str:
    return f"{AclOperation(need.operation).name} of {ResourceType(need.resource_type).name} {need.name}"


def _values(request: Any) -> Iterator[bytes]:
    for topic in request.topic_data:
        for part in topic.partition_data:
            for _, batch in iterate_batches(part.records):
                yield from (bytes(record.value or b"") for record in decode_batch(batch))


# -- what answers say

_DENIED_TOPIC, _DENIED_GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED


def _outcome(need: Need, error: int, denied: ErrorCode) -> Outcome:
    return Outcome(need, None if error == ErrorCode.UNKNOWN_SERVER_ERROR else error == denied)


def _topic(operation: AclOperation, name: str, error: int) -> Outcome:
    return _outcome(Need(operation, _R.TOPIC, name), error, _DENIED_TOPIC)


def _produce(request: Any, response: Any) -> Iterator[Outcome]:
    for topic in response.responses:
        for each in topic.partition_responses:
            yield _topic(_O.WRITE, topic.name, each.error_code)


def _fetch(request: Any, response: Any) -> Iterator[Outcome]:
    for topic in response.responses:
        for each in topic.partitions:
            yield _topic(_O.READ, topic.topic, each.error_code)


def _offset_commit(request: Any, response: Any) -> Iterator[Outcome]:
    """The group is asked about first, and the topics only if it is allowed."""
    group = Need(_O.READ, _R.GROUP, request.group_id)
    for topic in response.topics:
        for each in topic.partitions:
            yield _outcome(group, each.error_code, _DENIED_GROUP)
            if each.error_code in (_DENIED_TOPIC, ErrorCode.NONE):
                yield _topic(_O.READ, topic.name, each.error_code)


def _find_coordinator(request: Any, response: Any) -> Iterator[Outcome]:
    for each in response.coordinators:
        yield _outcome(Need(_O.DESCRIBE, _R.GROUP, each.key), each.error_code, _DENIED_GROUP)


def _metadata(request: Any, response: Any) -> Iterator[Outcome]:
    """An answer about all topics leaves out those that its client may not describe."""
    if request.topics is None:
        named = {topic.name for topic in response.topics}
        for name in TOPICS:
            yield Outcome(Need(_O.DESCRIBE, _R.TOPIC, name), name not in named)
    else:
        for topic in response.topics:
            yield _topic(_O.DESCRIBE, topic.name, topic.error_code)


def _cluster(need: Need, errors: list[int]) -> Iterator[Outcome]:
    for error in errors:
        if error in (ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            yield Outcome(need, error != ErrorCode.NONE)


OUTCOMES: Final[dict[int, Callable[[Any, Any], Iterator[Outcome]]]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.METADATA: _metadata,
    ApiKey.DESCRIBE_ACLS: lambda request, response: _cluster(DESCRIBE_ACLS, [response.error_code]),
    ApiKey.CREATE_ACLS: lambda request, response: _cluster(ALTER_ACLS, [each.error_code for each in response.results]),
    ApiKey.DELETE_ACLS: lambda request, response: _cluster(
        ALTER_ACLS, [each.error_code for each in response.filter_results]
    ),
}
"""By API: for each thing that the request needs, whether it was denied."""
