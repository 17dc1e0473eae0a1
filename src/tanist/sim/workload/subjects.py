"""The subjects of a secured run: clients that may do what the entries allow, and one that does not say who it is.

Owns what they ask for, one request at a time, mostly the same several times: a request that was answered is what a
broker may answer from memory. They write to topics of their own, so that their records are known. They judge nothing:
the checkers read their frames (`checkers.access`).

In the end each asks everybody for everything, until every answer is that of the entries (L16).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tanist.broker.network.channel import Channel, Channels
from tanist.client.acls import AclEntry, AclFilter, create_request, delete_request, describe_request
from tanist.client.metadata import metadata_request
from tanist.client.offsets import offset_commit
from tanist.client.positions import fetch_request
from tanist.client.requests import CoordinatorKind, find_coordinator
from tanist.client.sequences import produce_request
from tanist.sim.access_oracle import AccessOracle, Need
from tanist.sim.oracle import Oracle
from tanist.sim.secured import GROUP, NOBODY, TOPICS, Keys
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History, Send
from tanist.sim.world.world import BROKER_PORT, CONTROLLER_PORT, World
from tanist.wire.acls import CLUSTER_NAME, AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_acls_request import CreateAclsRequest
from tanist.wire.messages.delete_acls_request import DeleteAclsRequest

_O, _R = AclOperation, ResourceType
_WRITE, _READ, _COMMIT, _FIND, _NAMED, _ALL, _ACLS, _MAKE, _UNMAKE = (
    "write", "read", "commit", "find", "named", "all", "acls", "make", "unmake"
)  # fmt: skip
_KINDS: Final = {_WRITE: 5, _READ: 6, _COMMIT: 2, _FIND: 1, _NAMED: 2, _ALL: 2, _ACLS: 2, _MAKE: 1, _UNMAKE: 1}
"""What they ask for, and how often."""
_VERSIONS: Final = {
    _WRITE: 9, _READ: 12, _COMMIT: 8, _FIND: 4, _NAMED: 12, _ALL: 12, _ACLS: 3, _MAKE: 3, _UNMAKE: 3
}  # fmt: skip
_TIMEOUT_MS: Final = 2_000
_MAX_FRAME_BYTES: Final = 1 << 20
_READ_BYTES: Final = 4_000
_REPEATED_MAX: Final = 8
_ANYWHERE: Final = 0.1
"""The share of reads and writes that go to a broker that does not lead."""
_LOGIN_SHARE: Final = 0.25
"""Between two things that a subject asks for it connects anew, and shows something else."""
_PAUSE_MS: Final = (1, 80)
_AGAIN_MS: Final = 50


class Errand(NamedTuple):
    """What a subject asks for."""

    kind: str
    topic: str = TOPICS[0]
    node_id: int | None = None
    """Of whom; None: of the leader, or of any."""

    @property
    def need(self) -> Need:
        """What is needed for it, of those that are asked for in the end."""
        if self.kind == _ACLS:
            return Need(_O.DESCRIBE, _R.CLUSTER, CLUSTER_NAME)
        return Need({_WRITE: _O.WRITE, _READ: _O.READ}.get(self.kind, _O.DESCRIBE), _R.TOPIC, self.topic)


class Subject(SimClient):
    """Asks for one thing after the other."""

    def __init__(
        self, world: World, name: str, history: History, oracle: Oracle, access: AccessOracle, keys: Keys
    ) -> None:
        super().__init__(world, name, history)
        self._oracle = oracle
        self._access = access
        self._keys = keys
        self._errand = Errand(_NAMED)
        self._times = 0
        self._count = 0
        self._open = False
        self._coordinator: Channel | None = None
        self.left: list[Errand] = []
        """What is not answered as it has to be, of what it asks for in the end."""
        self._ends = False

    @property
    def idle(self) -> bool:
        return not self._open

    def start(self) -> None:
        self.run(self._next)

    def ask_for_everything(self) -> None:
        """Once more, of each broker, with the newest that it was given."""
        self._ends = True
        self.left = [
            *(Errand(kind, topic) for topic in TOPICS for kind in (_WRITE, _READ)),
            *(Errand(_NAMED, topic, host.node_id) for topic in TOPICS for host in self.world.brokers),
            *(Errand(_ACLS, node_id=host.node_id) for host in self.world.brokers),
        ]
        self._times = 0

    # -- one after the other

    def _next(self) -> None:
        if self.stopped:
            return
        if self._ends:
            if not self.left:
                return
            if self._times == 0:
                self._log_in(newest=True)
            self._times = 1
            self._errand = self.left[0]
        elif self._times > 0:
            self._times -= 1
        else:
            self._times = self.rng.randint(1, _REPEATED_MAX) - 1
            if self.rng.random() < _LOGIN_SHARE:
                self._log_in()
            (kind,) = self.rng.choices(list(_KINDS), weights=list(_KINDS.values()))
            topic, anywhere = self.rng.choice(TOPICS), kind not in (_WRITE, _READ) or self.rng.random() < _ANYWHERE
            self._errand = Errand(kind, topic, self.rng.choice(self.world.brokers).node_id if anywhere else None)
        self._ask(self._errand)

    def _log_in(self, *, newest: bool = False) -> None:
        """Close all connections, and open others by what it shows now."""
        self._channels.close()
        self._coordinator = None
        self._channels = Channels(
            self.clock,
            self._network,
            client_id=self.name,
            max_frame_bytes=_MAX_FRAME_BYTES,
            login=self._keys.shown_by(self.name, self.rng, newest=newest).login(self.rng),
        )

    def _ask(self, errand: Errand) -> None:
        self._open = True
        request, send = self._request(errand)

        def handle_response(response: Any | None) -> None:
            self._open = False
            if response is None and not self._ends:
                self._log_in()
            denied = None if response is None else self._take(errand, response, send)
            if self._ends and errand in self.left:
                if denied is not None and denied is not self._access.newest.allows(
                    f"User:{self.name}", self.name, errand.need
                ):
                    self.left.remove(errand)
                    self.later(0, self._next)
                    return
                self.left.append(self.left.pop(self.left.index(errand)))
                if response is None:
                    self._times = 0
            self.later(_AGAIN_MS if self._ends else self.rng.randint(*_PAUSE_MS), self._next)

        self._where(errand).call(request, _VERSIONS[errand.kind], _TIMEOUT_MS, handle_response)

    def _take(self, errand: Errand, response: Any, send: Send | None) -> bool | None:
        """Whether it was denied; None: neither that nor carried out."""
        if errand.kind == _FIND:
            found = response.coordinators[0]
            self._coordinator = None if found.error_code else self.channel((found.host, found.port))
            error = found.error_code
        elif errand.kind == _WRITE:
            answer = response.responses[0].partition_responses[0]
            error = answer.error_code
            if send is not None and error == ErrorCode.NONE:
                self.history.acknowledged(send, answer.base_offset, self.now_us)
            elif send is not None and error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                send.outcome, send.error, send.completed_us = "failed", error, self.now_us
        elif errand.kind == _READ:
            error = response.responses[0].partitions[0].error_code
        elif errand.kind == _NAMED:
            error = response.topics[0].error_code
        elif errand.kind == _ACLS:
            error = response.error_code
        else:
            return None
        if error in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            return True
        return False if error == ErrorCode.NONE or errand.kind == _NAMED else None

    # -- requests

    def _where(self, errand: Errand) -> Channel:
        if errand.kind == _COMMIT and self._coordinator is not None:
            return self._coordinator
        node_id = self._leader(errand.topic) if errand.node_id is None else errand.node_id
        host = self.world.hosts.get(-1 if node_id is None else node_id) or self.rng.choice(self.world.brokers)
        return self.channel((host.name, BROKER_PORT))

    def _leader(self, topic: str) -> int | None:
        topic_id = self._oracle.image.topic_ids.get(topic)
        state = None if topic_id is None else self._oracle.states.get((topic_id, 0))
        return None if state is None else state.leader

    def _request(self, errand: Errand) -> tuple[Any, Send | None]:
        topic, send = errand.topic, None
        request: Any
        if errand.kind == _WRITE:
            send = self._new_send(topic)
            batch = encode_batch([NewRecord(timestamp=self.clock.wall_ms(), key=None, value=send.value)])
            request = produce_request((topic, 0), bytes(batch), timeout_ms=_TIMEOUT_MS // 2)
        elif errand.kind == _READ:
            request = fetch_request((topic, 0), 0, max_bytes=_READ_BYTES, max_wait_ms=100)
        elif errand.kind == _COMMIT:
            request = offset_commit(GROUP, {(topic, 0): self._count})
        elif errand.kind == _FIND:
            request = find_coordinator(CoordinatorKind.GROUP, GROUP)
        elif errand.kind == _NAMED:
            request = metadata_request((topic,))
        elif errand.kind == _ALL:
            request = metadata_request(None)
        elif errand.kind == _ACLS:
            request = describe_request()
        elif errand.kind == _MAKE:
            self._count += 1
            request = _made_by(self.name, f"{self.name}-{self._count}")
        else:
            request = _unmade_by(self.name, f"{self.name}-{self._count}")
        return request, send

    def _new_send(self, topic: str) -> Send:
        self._count += 1
        value = f"{self.name}-{self._count}".encode()
        send = Send(self.name, self._count, topic, 0, value, self.now_us, ordered=False)
        self.history.sent(send)
        return send


class Stranger(SimClient):
    """Asks nodes without saying who it is, over a new connection each time."""

    def __init__(self, world: World, history: History) -> None:
        super().__init__(world, NOBODY, history)

    def start(self) -> None:
        self.run(self._next)

    def _next(self) -> None:
        if self.stopped:
            return
        self._channels.close()
        self._channels = Channels(self.clock, self._network, client_id=self.name, max_frame_bytes=_MAX_FRAME_BYTES)
        request, version, port = self.rng.choice(_OF_STRANGERS)
        host = self.rng.choice([host for host in self.world.hosts.values() if host.votes or port == BROKER_PORT])
        if port == BROKER_PORT and not host.is_broker:
            host = self.world.brokers[0]
        pause_ms = self.rng.randint(50, 300)

        def handle_response(response: Any | None) -> None:
            self.world.counts["access: strangers turned away"] += response is None
            self.later(pause_ms, self._next)

        self.channel((host.name, port)).call(request, version, _TIMEOUT_MS, handle_response)


def _made_by(name: str, resource: str) -> CreateAclsRequest:
    who = f"User:{name}"
    return create_request((AclEntry(_R.TOPIC, resource, PatternType.LITERAL, who, "*", _O.READ, AclPermission.ALLOW),))


def _unmade_by(name: str, resource: str) -> DeleteAclsRequest:
    return delete_request((AclFilter(_R.TOPIC, resource, PatternType.LITERAL, f"User:{name}"),))


_OF_STRANGERS: Final[tuple[tuple[Any, int, int], ...]] = (
    (metadata_request(None), 12, BROKER_PORT),
    (fetch_request((TOPICS[0], 0), 0, max_bytes=_READ_BYTES), 12, BROKER_PORT),
    (describe_request(), 3, BROKER_PORT),
    (_made_by(NOBODY, NOBODY), 3, BROKER_PORT),
    (_made_by(NOBODY, NOBODY), 3, CONTROLLER_PORT),
)
