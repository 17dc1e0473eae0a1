"""One random sequence of requests, asked of a node of each; each answer is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_response, encode_request
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from tanist.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.offset_delete_request import OffsetDeleteRequest
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from tanist.wire.schema import Request
from tests.interop.raw import RawClient
from tests.interop.requests.drawing import GROUPS, THEMES, TOPICS, TRANSACTIONS, draw
from tests.interop.requests.known import CLOSED, KNOWN, errors, parts_ways
from tests.interop.requests.newer_groups import APPLICATIONS, INTERNAL_TOPICS, SHARE_GROUPS
from tests.interop.requests.symbols import Known
from tests.interop.waiting import wait_for

Step = tuple[Request, int]
TIMEOUT_S = 15.0
_OF_GROUPS = 32
"""The type of a resource that is a group."""


class Difference(NamedTuple):
    step: int
    request: Request
    version: int
    apache: Any
    tanist: Any
    reason: str | None
    """Why it is so, if that is known."""

    def __str__(self) -> str:
        asked = f"{self.api} {self.version}: {self.request}"
        return f"{asked}\n    Apache: {self.apache}\n    tanist: {self.tanist}"

    @property
    def api(self) -> str:
        return ApiKey(self.request.API_KEY).name

    @property
    def kind(self) -> str:
        """The request and the fields that differ, with both values."""
        found = sorted(set(_differences(self.apache, self.tanist)))
        return f"{self.api}: {'; '.join(found)}"[:300]

    @property
    def shape(self) -> tuple[int, Any, Any]:
        return self.request.API_KEY, repr(self.apache), repr(self.tanist)


def _differences(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in theirs:
            yield from _differences(theirs[name], ours[name], name)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for one, other in zip(theirs, ours, strict=True):
            yield from _differences(one, other, path)
    elif theirs != ours:
        both = (f"{len(each)} of them" if isinstance(each, list) else str(each) for each in (theirs, ours))
        yield f"{path} {' | '.join(both)}"


class Counts(NamedTuple):
    """What was asked, how much of it without an error, and why sequences have ended before their last step."""

    asked: Counter[str]
    done: Counter[str]
    ended: Counter[str]


class Node:
    """A connection to one node, and what it has given values to in this sequence."""

    def __init__(self, address: tuple[str, int], prefix: str) -> None:
        self._address = address
        self._client = RawClient(*address, timeout_s=TIMEOUT_S)
        self.known = Known(prefix)
        self._entries = 0

    def close(self) -> None:
        self._client.close()

    def ask(self, request: Request, version: int) -> Any:
        """The answer with symbols, or that there was none."""
        key = request.API_KEY
        filled = self.known.filled(request)
        frame = encode_request(filled, version, 1, "requests")
        try:
            answer = decode_response(key, version, self._client.exchange(frame))
        except OSError as error:
            self.connect_again()
            return CLOSED if "hung up" in str(error) or isinstance(error, ConnectionError) else str(error)
        return self.known.answer(filled, answer, version)

    def connect_again(self) -> None:
        """Sessions end with their connection."""
        self._client.close()
        self._client = RawClient(*self._address, timeout_s=TIMEOUT_S)
        self.known.forget_sessions()

    def begin(self) -> None:
        """Two topics, known to the broker, and empty classic groups: from these both begin with the same epochs."""
        create = CreateTopicsRequest(
            topics=tuple(
                CreatableTopic(name=self.known.prefix + name, num_partitions=count, replication_factor=1)
                for name, count in (("t0", 2), ("t1", 1))
            ),
            timeout_ms=20_000,
        )
        self.ask(create, 5)
        wait_for(lambda: len(self.topics()) == 2, "the topics are there")
        for kind, keys in enumerate(({*GROUPS, "g9", *SHARE_GROUPS, *APPLICATIONS}, {*TRANSACTIONS, "x9"})):
            for key in sorted(keys):
                self._find(self.known.prefix + key, kind)
        self._read_from_the_start(self.known.prefix + SHARE_GROUPS[0])
        for group in sorted(set(GROUPS)):
            self._make_group(self.known.prefix + group)
        wait_for(
            lambda: not self.ask(InitProducerIdRequest(transactional_id=None), 4)["error_code"], "ids of producers"
        )

    def _find(self, key: str, kind: int) -> None:
        """The coordinator of a group or a transactional id is there."""
        asked = FindCoordinatorRequest(key=key, key_type=kind)
        wait_for(lambda: not self.ask(asked, 3)["error_code"], f"there is a coordinator of {key}")

    def _make_group(self, group: str) -> None:
        refused = JoinGroupRequest(group_id=group, session_timeout_ms=30_000)
        wait_for(
            lambda: self.ask(refused, 5)["error_code"] == ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"there is an empty group {group}",
        )

    def _read_from_the_start(self, group: str) -> None:
        """A share group's property; others begin at the end."""
        name, value = "share.auto.offset.reset", "earliest"
        change = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=_OF_GROUPS, resource_name=group, configs=(change,))
        self.ask(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
        wanted = DescribeConfigsResource(resource_type=_OF_GROUPS, resource_name=group, configuration_keys=(name,))

        def is_known() -> bool:
            (found,) = self.ask(DescribeConfigsRequest(resources=(wanted,)), 4)["results"]
            return [each["value"] for each in found["configs"]] == [value]

        wait_for(is_known, f"the property of {group} is there")

    def have_share_states(self, request: ShareGroupHeartbeatRequest) -> None:
        """There is a state of each share partition that a member has subscribed to: the next heartbeat assigns it."""
        led = self.topics()
        names = {getattr(each, "of", None) for each in request.subscribed_topic_names or ()}
        wanted = {name: count for name, count in led.items() if name in names}
        group = DescribeShareGroupOffsetsRequestGroup(group_id=request.group_id, topics=None)

        def are_there() -> bool:
            (found,) = self.ask(DescribeShareGroupOffsetsRequest(groups=(group,)), 0)["groups"]
            there = {each["topic_name"]: len(each["partitions"]) for each in found["topics"]}
            return wanted.items() <= there.items()

        with suppress(AssertionError):
            wait_for(are_there, "the states are there", timeout_s=5.0)

    def has_group(self, request: JoinGroupRequest) -> bool:
        """Whether there is a group after a request to join it. A list of groups has what is committed."""
        answer = self.ask(OffsetDeleteRequest(group_id=request.group_id), 0)
        return bool(answer["error_code"] != ErrorCode.GROUP_ID_NOT_FOUND)

    def have_internal_topics(self) -> None:
        """The broker has made them, after the answer to a member that needs them."""
        with suppress(AssertionError):
            wait_for(lambda: self.topics().keys() >= {*INTERNAL_TOPICS}, "they are there", timeout_s=5.0)

    def know_entries(self) -> None:
        """The broker knows the latest entry, and so those before."""
        self._entries += 1
        name = f"{self.known.prefix}latest-{self._entries}"
        entry = AclCreation(
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            principal="User:nobody",
            host="*",
            operation=AclOperation.READ,
            permission_type=AclPermission.ALLOW,
        )
        self.ask(CreateAclsRequest(creations=(entry,)), 3)
        asked = DescribeAclsRequest(
            resource_type_filter=ResourceType.TOPIC,
            resource_name_filter=name,
            pattern_type_filter=PatternType.LITERAL,
            operation=AclOperation.ANY,
            permission_type=AclPermission.ANY,
        )
        wait_for(lambda: self.ask(asked, 3)["resources"], "the broker knows the latest entry")

    def end_transaction(self, request: Request) -> None:
        """Its markers are written."""
        transaction = getattr(request, "transactional_id", None)
        asked = DescribeTransactionsRequest(transactional_ids=(transaction or "",))

        def over() -> bool:
            (found,) = self.ask(asked, 0)["transaction_states"]
            return not found["transaction_state"].startswith("Prepare")

        if transaction:
            wait_for(over, "the transaction has ended")

    def topics(self) -> dict[str, int]:
        """How many partitions each topic of the sequence has that the broker leads; learns their ids."""
        drawn = sorted({*TOPICS, "t9", *INTERNAL_TOPICS})
        names = tuple(MetadataRequestTopic(name=self.known.prefix + each) for each in drawn)
        answer = self.ask(MetadataRequest(topics=names, allow_auto_topic_creation=False), 12)
        found = {each["name"]: len(each["partitions"]) for each in answer["topics"] if not each["error_code"]}
        ends = tuple(
            ListOffsetsTopic(
                name=self.known.prefix + name,
                partitions=tuple(ListOffsetsPartition(partition_index=each, timestamp=-1) for each in range(count)),
            )
            for name, count in found.items()
        )
        led = self.ask(ListOffsetsRequest(replica_id=-1, topics=ends), 5)["topics"]
        return {
            each["name"]: found[each["name"]]
            for each in led
            if all(not part["error_code"] for part in each["partitions"])
        }


MISSING_INTERNAL_TOPICS = 3


def _statuses(answer: Any) -> Sequence[Any]:
    return (answer.get("status") or ()) if isinstance(answer, dict) else ()


CHANGES = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS})


def drawn(seed: int, count: int, versions: Mapping[int, tuple[int, int]], likely_share: float = 0.0) -> list[Step]:
    """`likely_share`: of requests whose fields fit together, so that they may well succeed."""
    random = Random(seed)
    theme = random.choice(THEMES)
    return [draw(random, versions, theme, likely_share) for _ in range(count)]


def play(
    sides: tuple[tuple[str, int], tuple[str, int]],
    prefix: str,
    steps: Sequence[Step],
    counts: Counts,
    *,
    to_the_end: bool = False,
) -> list[Difference]:
    """The differences, up to the first that nothing explains, or `to_the_end`, or as far as both have the same."""
    theirs, ours = (Node(each, prefix) for each in sides)
    found = []
    try:
        for node in (theirs, ours):
            node.begin()
        for number, (request, version) in enumerate(steps):
            apache, tanist = _both(theirs, ours, request, version)
            if request.API_KEY in CHANGES:
                _settle(theirs, ours)
            elif request.API_KEY in (ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS):
                for node in (theirs, ours):
                    node.know_entries()
            elif isinstance(request, ShareGroupHeartbeatRequest) and apache != CLOSED and not any(errors(apache)):
                for node in (theirs, ours):
                    node.have_share_states(request)
            elif isinstance(request, StreamsGroupHeartbeatRequest) and any(
                each["status_code"] == MISSING_INTERNAL_TOPICS for each in _statuses(apache)
            ):
                for node in (theirs, ours):
                    node.have_internal_topics()
            elif request.API_KEY in (ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID):
                for node in (theirs, ours):
                    node.end_transaction(request)
            if apache != tanist and _reads(request):
                apache, tanist = _later(theirs, ours, request, version)
            if (apache == CLOSED) != (tanist == CLOSED):
                (ours if apache == CLOSED else theirs).connect_again()
            counts.asked[ApiKey(request.API_KEY).name] += 1
            counts.done[ApiKey(request.API_KEY).name] += apache != CLOSED and not any(errors(apache))
            if apache != tanist:
                reason = next((why for why, of in KNOWN.items() if of(request, version, apache, tanist)), None)
                found.append(Difference(number, request, version, apache, tanist, reason))
                if reason is None and not to_the_end:
                    break
            parts = parts_ways(request, apache, tanist)
            if isinstance(request, JoinGroupRequest) and theirs.has_group(request) != ours.has_group(request):
                parts = "Apache Kafka forgets a consumer group without members when a former one joins it"
            if parts:
                counts.ended[parts] += 1
                break
    finally:
        theirs.close()
        ours.close()
    return found


READS = frozenset(
    {
        ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FETCH, ApiKey.DESCRIBE_GROUPS, ApiKey.FIND_COORDINATOR,
        ApiKey.DESCRIBE_PRODUCERS, ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.DESCRIBE_CONFIGS, ApiKey.FETCH,
        ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.STREAMS_GROUP_DESCRIBE, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    }
)  # fmt: skip


def _both(theirs: Node, ours: Node, request: Request, version: int) -> tuple[Any, Any]:
    """Asked at the same time: some answers wait for other members, and for so long."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(theirs.ask, request, version)
        tanist = ours.ask(request, version)
        return waiting.result(), tanist


def _reads(request: Request) -> bool:
    return request.API_KEY in READS and not getattr(request, "session_id", 0)


def _later(theirs: Node, ours: Node, request: Request, version: int) -> tuple[Any, Any]:
    """What a change has not reached yet, such as a marker of a transaction that has ended, is asked again."""
    answers: list[Any] = [None, None]

    def equal() -> bool:
        answers[:] = theirs.ask(request, version), ours.ask(request, version)
        return bool(answers[0] == answers[1])

    with suppress(AssertionError):
        wait_for(equal, "both answer the same", timeout_s=3.0)
    return answers[0], answers[1]


def _settle(theirs: Node, ours: Node) -> None:
    """A change of topics has reached both brokers, if both have made it."""
    with suppress(AssertionError):
        wait_for(lambda: theirs.topics() == ours.topics(), "the topics are the same", timeout_s=5.0)


def shown(steps: Sequence[Step]) -> str:
    return "\n".join(
        f"  {number} {ApiKey(request.API_KEY).name} {version}: {request}"
        for number, (request, version) in enumerate(steps)
    )
