"""Consumer groups of any Kafka cluster, through `Client`: what there is, who has what, where they are, and moving them.

Each question goes to the group's coordinator, which is looked up anew when it has moved. A refusal is a
`KafkaError` with the broker's message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tanist.client.errors import Meaning, meaning_in, refusal_in
from tanist.client.offsets import VERSION_MAX, offset_commit, offset_fetch, offsets_in
from tanist.client.requests import CoordinatorKind
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.changes import carry_out
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.coordinators import ask_all_coordinators, coordinator_of
from tanist.wire.codec import WireError
from tanist.wire.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from tanist.wire.errors import ErrorCode
from tanist.wire.messages import (
    consumer_group_describe_response,
    share_group_describe_response,
    streams_group_describe_response,
)
from tanist.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from tanist.wire.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.delete_groups_response import DeleteGroupsResponse
from tanist.wire.messages.describe_groups_request import DescribeGroupsRequest
from tanist.wire.messages.describe_groups_response import DescribeGroupsResponse
from tanist.wire.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from tanist.wire.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.list_groups_response import ListGroupsResponse
from tanist.wire.messages.offset_commit_request import OffsetCommitRequest
from tanist.wire.messages.offset_commit_response import OffsetCommitResponse
from tanist.wire.messages.offset_fetch_request import OffsetFetchRequest
from tanist.wire.messages.offset_fetch_response import OffsetFetchResponse
from tanist.wire.messages.share_group_describe_request import ShareGroupDescribeRequest
from tanist.wire.messages.share_group_describe_response import ShareGroupDescribeResponse
from tanist.wire.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from tanist.wire.messages.streams_group_describe_response import StreamsGroupDescribeResponse
from tanist.wire.schema import Request, Response

R = TypeVar("R", bound=Response)


_OF_OFFSETS: dict[type[Request], int] = dict.fromkeys((OffsetFetchRequest, OffsetCommitRequest), VERSION_MAX)
SHARE = "share"
DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class GroupListing:
    group: str
    kind: str
    """`classic` or `consumer`; empty where the broker does not say."""
    state: str
    protocol_type: str


@dataclass(frozen=True, slots=True)
class MemberDescription:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    epoch: int | None
    """None in a group of the classic protocol."""
    assigned: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] | None
    """The partitions that it will have; None in a group of the classic protocol."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group: str
    kind: str
    state: str
    assignor: str
    coordinator: int
    epoch: int | None
    members: tuple[MemberDescription, ...]


def list_groups(client: Client, *, some: bool = False) -> list[GroupListing]:
    """All groups, by name: every broker is asked for those that it coordinates. `KafkaError` if there may be others.

    `some`: those whose coordinators can be asked.
    """
    answers = ask_all_coordinators(
        client,
        CoordinatorKind.GROUP,
        ListGroupsRequest(),
        ListGroupsResponse,
        some=some,
    )
    found = [
        GroupListing(each.group_id, each.group_type.lower(), each.group_state, each.protocol_type)
        for answer in answers.values()
        for each in answer.groups
    ]
    return sorted(found, key=lambda listing: listing.group)


def describe_group(client: Client, group: str) -> GroupDescription:
    """A group of any protocol. `KafkaError` (GROUP_ID_NOT_FOUND) if there is none."""
    for describe in (_describe_consumer_group, _describe_share_group, _describe_streams_group):
        try:
            return describe(client, group)
        except Unsupported:
            continue
        except KafkaError as error:
            if error.code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                raise
    return _describe_classic_group(client, group)


def _describe_share_group(client: Client, group: str) -> GroupDescription:
    request = ShareGroupDescribeRequest(group_ids=(group,))
    answer, coordinator = ask_coordinator(client, group, request, ShareGroupDescribeResponse)
    described = answer.groups[0]
    return GroupDescription(
        group,
        SHARE,
        described.group_state,
        described.assignor_name,
        coordinator,
        described.group_epoch,
        tuple(
            MemberDescription(
                each.member_id,
                None,
                each.client_id,
                each.client_host,
                each.member_epoch,
                _places(each.assignment),
                None,
            )
            for each in described.members
        ),
    )


def _describe_streams_group(client: Client, group: str) -> GroupDescription:
    """Its tasks, as the partitions that they read."""
    request = StreamsGroupDescribeRequest(group_ids=(group,))
    answer, coordinator = ask_coordinator(client, group, request, StreamsGroupDescribeResponse)
    described = answer.groups[0]
    parts = described.topology.subtopologies or () if described.topology is not None else ()
    sources = {
        part.subtopology_id: (*part.source_topics, *(each.name for each in part.repartition_source_topics))
        for part in parts
    }

    def places(assignment: streams_group_describe_response.Assignment) -> tuple[TopicPartition, ...]:
        return tuple(
            sorted(
                (topic, index)
                for tasks in assignment.active_tasks
                for topic in sources.get(tasks.subtopology_id, ())
                for index in tasks.partitions
            )
        )

    return GroupDescription(
        group,
        "streams",
        described.group_state,
        described.assignor_name or "",
        coordinator,
        described.group_epoch,
        _members(described.members, places),
    )


def share_offsets(client: Client, group: str) -> dict[TopicPartition, tuple[int, int | None]]:
    """Where a share group is: its start offset, below which all was dealt with, and its lag, if the broker says one
    (KIP-1226). Partitions that it has not begun are left out.
    """
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=(asked,))
    answer, _ = ask_coordinator(client, group, request, DescribeShareGroupOffsetsResponse)
    return {
        (topic.topic_name, each.partition_index): (each.start_offset, each.lag if each.lag >= 0 else None)
        for topic in answer.groups[0].topics
        for each in topic.partitions
        if each.start_offset >= 0
    }


def _describe_consumer_group(client: Client, group: str) -> GroupDescription:
    answer, coordinator = ask_coordinator(
        client,
        group,
        ConsumerGroupDescribeRequest(group_ids=(group,)),
        ConsumerGroupDescribeResponse,
    )
    described = answer.groups[0]
    return GroupDescription(
        group,
        "consumer",
        described.group_state,
        described.assignor_name,
        coordinator,
        described.group_epoch,
        _members(described.members, _places),
    )


def _members(
    members: Iterable[Any], places: Callable[[Any], tuple[TopicPartition, ...]]
) -> tuple[MemberDescription, ...]:
    """Of a consumer or Streams group, which describe them alike."""
    return tuple(
        MemberDescription(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            each.member_epoch,
            places(each.assignment),
            places(each.target_assignment),
        )
        for each in members
    )


def _places(
    assignment: consumer_group_describe_response.Assignment | share_group_describe_response.Assignment,
) -> tuple[TopicPartition, ...]:
    return tuple(sorted((part.topic_name, index) for part in assignment.topic_partitions for index in part.partitions))


def _describe_classic_group(client: Client, group: str) -> GroupDescription:
    answer, coordinator = ask_coordinator(
        client,
        group,
        DescribeGroupsRequest(groups=(group,)),
        DescribeGroupsResponse,
    )
    described = answer.groups[0]
    if described.group_state == DEAD:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group}")
    return GroupDescription(
        group,
        "classic",
        described.group_state,
        described.protocol_data,
        coordinator,
        None,
        tuple(
            MemberDescription(
                each.member_id,
                each.group_instance_id,
                each.client_id,
                each.client_host,
                None,
                _assigned(bytes(each.member_assignment)) if described.protocol_type == PROTOCOL_TYPE else (),
                None,
            )
            for each in described.members
        ),
    )


def _assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in an assignment of Kafka's own consumers; nothing if it is none that can be read."""
    try:
        decoded = decode_assignment(assignment)
    except WireError:
        return ()
    return tuple(sorted((part.topic, index) for part in decoded.assigned_partitions for index in part.partitions))


def committed_offsets(client: Client, group: str) -> dict[TopicPartition, int]:
    """The offsets that the group has committed: none, if there is no such group."""
    answer, _ = ask_coordinator(client, group, offset_fetch(group), OffsetFetchResponse)
    return {where: offset for where, (offset, _) in offsets_in(answer).items() if offset >= 0}


def existing(client: Client, group: str, places: Iterable[TopicPartition]) -> set[TopicPartition]:
    """Those of the partitions that are there, by the group's coordinator.

    It takes commits for partitions that it knows of, so it does not lag behind any offset in question. A group may have
    offsets of others all the same: older coordinators took any.
    """
    wanted = set(places)
    if not wanted:
        return set()
    topics = sorted({topic for topic, _ in wanted})

    def attempt() -> set[TopicPartition]:
        view = client.metadata(topics, node_id=coordinator_of(client, CoordinatorKind.GROUP, group))
        found = set()
        for name in topics:
            topic = view.topics.get(name)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
            if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise KafkaError(code, name)
            found |= {(name, index) for index in ({} if topic is None else topic.partitions)}
        return found

    return wanted & client.persist(attempt)


def commit_offsets(client: Client, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Move a group that nobody is in. `KafkaError` if somebody is, or a partition is refused."""
    ask_coordinator(client, group, offset_commit(group, offsets), OffsetCommitResponse)


def delete_groups(client: Client, groups: Iterable[str]) -> dict[str, int]:
    """Delete groups that nobody is in, with their offsets; the error code for each."""
    results: dict[str, int] = {}
    for group in groups:
        try:
            _delete_group(client, group)
            results[group] = ErrorCode.NONE
        except KafkaError as error:
            results[group] = error.code
    return results


def _delete_group(client: Client, group: str) -> None:
    """Once: after a lost answer GROUP_ID_NOT_FOUND means that the first request has done it."""

    def attempt(patience_s: float) -> bool:
        node_id = coordinator_of(client, CoordinatorKind.GROUP, group)
        request = DeleteGroupsRequest(groups_names=(group,))
        answer = client.ask(request, DeleteGroupsResponse, node_id=node_id, timeout_s=patience_s, once=True)
        if answer.results[0].error_code:
            raise KafkaError(answer.results[0].error_code, f"group {group}")
        return True

    def find_result() -> bool | None:
        try:
            describe_group(client, group)
        except KafkaError as error:
            if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
                return True
            raise
        return None

    carry_out(client, f"delete group {group}", attempt, find_result, already=(ErrorCode.GROUP_ID_NOT_FOUND,))


def ask_coordinator(
    client: Client,
    group: str,
    request: Request,
    answers: type[R],
    *,
    expected: Collection[Meaning] = (),
    answer_within_s: float | None = None,
) -> tuple[R, int]:
    """Ask the group's coordinator, wherever it is by then; also gives its id. `Unsupported` by broker or by cluster.

    An answer that means one of `expected` is no error. `answer_within_s`: of one attempt, where the coordinator may
    take its time (JoinGroup).
    """

    def attempt() -> tuple[R, int]:
        node_id = coordinator_of(client, CoordinatorKind.GROUP, group)
        try:
            answer = client.ask(
                request,
                answers,
                node_id=node_id,
                timeout_s=answer_within_s,
                max_version=_OF_OFFSETS.get(type(request)),
            )
        except Unreachable as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        code, said = refusal_in(answer)
        if code == ErrorCode.UNSUPPORTED_VERSION:
            # The coordinator has the request, and the cluster not the feature: it is as if neither had it.
            raise Unsupported(f"the cluster's features (group.version) do not allow {type(request).__name__}")
        if code and meaning_in(answer) not in expected:
            missing = code == ErrorCode.GROUP_ID_NOT_FOUND
            raise KafkaError(code, f"there is no group {group}" if missing else said or f"group {group}")
        return answer, node_id

    return client.persist(attempt)


def split_places(texts: Sequence[str]) -> list[tuple[str, tuple[int, ...] | None]]:
    """Kafka's way to name partitions: `topic`, or `topic:0,1,2`. `ValueError` if it is neither."""
    found: list[tuple[str, tuple[int, ...] | None]] = []
    for text in texts:
        topic, colon, indexes = text.partition(":")
        if not topic:
            raise ValueError(f"{text!r} names no topic")
        if not colon:
            found.append((topic, None))
            continue
        try:
            numbers = tuple(int(each) for each in indexes.split(","))
        except ValueError:
            raise ValueError(f"{text!r}: after the colon come partitions, like {topic}:0,1") from None
        if any(number < 0 for number in numbers):
            raise ValueError(f"{text!r}: a partition is 0 or more")
        found.append((topic, numbers))
    return found
