"""A member of a Streams group: what a heartbeat says of it, and whether it may say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tanist.coordinator.consumer.member import JOINING_EPOCH, LEAVING_STATIC_EPOCH
from tanist.coordinator.effects import Refused
from tanist.coordinator.streams.tasks import CurrentTasks, Tasks
from tanist.coordinator.streams.topology import ConfiguredSubtopology, ConfiguredTopology
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.streams_group_heartbeat_request import KeyValue, StreamsGroupHeartbeatRequest, TaskOffset
from tanist.wire.streams_group_records import StreamsMemberValue


def merged(
    before: StreamsMemberValue | None, beat: StreamsGroupHeartbeatRequest, client_id: str, client_host: str
) -> StreamsMemberValue:
    """The member, after a heartbeat: fields that it omits are unchanged, but for the endpoint of one that joins."""
    old = before or StreamsMemberValue()
    keeps_endpoint = beat.user_endpoint is None and beat.member_epoch != JOINING_EPOCH
    tags, timeout_ms = beat.client_tags, beat.rebalance_timeout_ms
    return StreamsMemberValue(
        instance_id=beat.instance_id if beat.instance_id is not None else old.instance_id,
        rack_id=beat.rack_id if beat.rack_id is not None else old.rack_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=timeout_ms if timeout_ms >= 0 else old.rebalance_timeout_ms,
        topology_epoch=old.topology_epoch if beat.topology is None else beat.topology.epoch,
        process_id=beat.process_id if beat.process_id is not None else old.process_id,
        user_endpoint=old.user_endpoint if keeps_endpoint else beat.user_endpoint,
        client_tags=old.client_tags if tags is None else tuple(sorted(tags, key=_tag)),
    )


def needs_new_assignment(before: StreamsMemberValue | None, after: StreamsMemberValue) -> bool:
    """Whether the group's epoch grows for a change of a member. A static member may come back from another address."""
    if before is None or after.instance_id is None:
        return before != after
    return _of_assignments(before) != _of_assignments(after)


def _of_assignments(member: StreamsMemberValue) -> tuple[object, ...]:
    return member.topology_epoch, member.rack_id, member.client_tags, member.process_id


def _tag(each: KeyValue) -> tuple[str, str]:
    return each.key, each.value


class TaskOffsets(NamedTuple):
    """How far a member's tasks are in their changelogs, by subtopology and partition (clients of Apache Kafka 4.4)."""

    reached: Mapping[tuple[str, int], int] = MappingProxyType({})
    ends: Mapping[tuple[str, int], int] = MappingProxyType({})

    def updated(self, beat: StreamsGroupHeartbeatRequest) -> TaskOffsets:
        """With what a heartbeat says; what it omits is unchanged."""
        return TaskOffsets(
            self.reached if beat.task_offsets is None else _by_task(beat.task_offsets),
            self.ends if beat.task_end_offsets is None else _by_task(beat.task_end_offsets),
        )

    def within(self, subtopologies: Mapping[str, ConfiguredSubtopology]) -> TaskOffsets:
        """Those of tasks that there are."""

        def known(offsets: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
            return {
                (name, index): offset
                for (name, index), offset in offsets.items()
                if name in subtopologies and 0 <= index < subtopologies[name].tasks
            }

        return TaskOffsets(known(self.reached), known(self.ends))


def _by_task(offsets: Iterable[TaskOffset]) -> dict[tuple[str, int], int]:
    return {(each.subtopology_id, each.partition): each.offset for each in offsets}


def check_epoch(beat: StreamsGroupHeartbeatRequest, reported: Tasks | None, current: CurrentTasks | None) -> None:
    """Whether the member is known, and in this epoch or the one before, whose answer was lost."""
    epoch = beat.member_epoch
    if epoch == JOINING_EPOCH:
        return
    if current is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {beat.member_id} is not a member of group {beat.group_id}.")
    lost_answer = (
        epoch == current.previous_epoch
        and reported is not None
        and all(indexes <= current.assigned.get(key, {}).keys() for key, indexes in reported.items())
    )
    if epoch > current.epoch or (epoch < current.epoch and not lost_answer):
        than = "greater" if epoch > current.epoch else "smaller"
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The streams group member has a {than} member epoch ({epoch}) than the one known by the group "
            f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
        )


def check_tasks(configured: ConfiguredTopology, reported: Tasks | None) -> None:
    """A member has no tasks that the topology does not have."""
    if not configured.is_ready:
        return
    for key, indexes in (reported or {}).items():
        part = configured.subtopologies.get(key.subtopology_id)
        if part is None:
            raise _invalid(f"Subtopology {key.subtopology_id} does not exist in the topology.")
        for index in sorted(indexes):
            if not 0 <= index < part.tasks:
                raise _invalid(
                    f"Task {index} for subtopology {key.subtopology_id} is invalid. Number of tasks for this "
                    f"subtopology: {part.tasks}"
                )


def check_form(beat: StreamsGroupHeartbeatRequest) -> None:
    """The checks of a request that do not depend on the group (Apache Kafka's)."""
    fault = _unsupported(beat) or _malformed(beat)
    if fault is not None:
        raise _invalid(fault)
    for part in () if beat.topology is None else beat.topology.subtopologies:
        for topic in part.state_changelog_topics:
            if topic.partitions:
                raise Refused(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}.",
                )


def _unsupported(beat: StreamsGroupHeartbeatRequest) -> str | None:
    if beat.topology is not None and any(part.source_topic_regex for part in beat.topology.subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return None


def _malformed(beat: StreamsGroupHeartbeatRequest) -> str | None:
    if not beat.member_id.strip():
        return "MemberId can't be empty."
    if not beat.group_id.strip():
        return "GroupId can't be empty."
    if beat.instance_id is not None and not beat.instance_id.strip():
        return "InstanceId can't be empty."
    if beat.rack_id is not None and not beat.rack_id.strip():
        return "RackId can't be empty."
    tasks = (beat.active_tasks, beat.standby_tasks, beat.warmup_tasks)
    if beat.member_epoch == JOINING_EPOCH:
        if beat.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        for name, had in zip(("ActiveTasks", "StandbyTasks", "WarmupTasks"), tasks):
            if had:
                return f"{name} must be empty when (re-)joining."
        if beat.topology is None:
            return "Topology must be non-null when (re-)joining."
        if beat.topology.epoch < 0:
            return "Topology epoch must be non-negative."
    elif beat.member_epoch == LEAVING_STATIC_EPOCH and beat.instance_id is None:
        return "InstanceId can't be null."
    elif beat.member_epoch < LEAVING_STATIC_EPOCH:
        return f"MemberEpoch is {beat.member_epoch}, but must be greater than or equal to -2."
    if None in tasks and tasks != (None, None, None):
        return "If one task-type is non-null, all must be non-null."
    if beat.member_epoch != JOINING_EPOCH and beat.topology is not None:
        return "Topology can only be provided when (re-)joining."
    return None


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
