"""Tasks of a Streams group, and their records.

A task is a partition number of a subtopology. A member has it in a role: it works on it, or follows its changelog to
take over (standby), or catches up to take over (warm-up).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeAlias, TypeVar

from tanist.coordinator.consumer.member import Current, MemberState
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, TaskIds
from tanist.wire.streams_group_records import AssignedTasks, StreamsMemberCurrentValue, StreamsMemberTargetValue

T = TypeVar("T")

INITIAL_EPOCH = 1
"""Of a group, and of its target, before there is a record of either, as in Apache Kafka."""


class Role(IntEnum):
    """What a member does with a task."""

    ACTIVE = 0
    STANDBY = 1
    WARMUP = 2


class RoleIn(NamedTuple):
    """A role in a subtopology: what tasks are counted within."""

    role: Role
    subtopology_id: str


Tasks: TypeAlias = Mapping[RoleIn, frozenset[int]]
CurrentTasks: TypeAlias = Current[RoleIn]

_STATE_NUMBERS = {
    MemberState.STABLE: 1,
    MemberState.UNREVOKED_PARTITIONS: 2,
    MemberState.UNRELEASED_PARTITIONS: 3,
}
"""Numbers of a Streams group's records; a consumer group's are others."""
_STATES = {number: state for state, number in _STATE_NUMBERS.items()}


def ids_of(tasks: Mapping[RoleIn, Iterable[int]], role: Role, kind: Callable[..., T]) -> tuple[T, ...]:
    """The tasks of one role, as a message or a record has them: it has a `kind` of its own."""
    return tuple(
        kind(subtopology_id=key.subtopology_id, partitions=tuple(sorted(indexes)))
        for key, indexes in sorted(tasks.items())
        if key.role is role and indexes
    )


def _read(role: Role, ids: Iterable[TaskIds | AssignedTasks]) -> dict[RoleIn, frozenset[int]]:
    return {RoleIn(role, each.subtopology_id): frozenset(each.partitions) for each in ids}


def reported_in(beat: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """The tasks that a member says it has; None if nothing has changed. It tells of all roles or of none."""
    if beat.active_tasks is None or beat.standby_tasks is None or beat.warmup_tasks is None:
        return None
    return {
        **_read(Role.ACTIVE, beat.active_tasks),
        **_read(Role.STANDBY, beat.standby_tasks),
        **_read(Role.WARMUP, beat.warmup_tasks),
    }


def target_record(target: Tasks) -> StreamsMemberTargetValue:
    return StreamsMemberTargetValue(
        active_tasks=ids_of(target, Role.ACTIVE, TaskIds),
        standby_tasks=ids_of(target, Role.STANDBY, TaskIds),
        warmup_tasks=ids_of(target, Role.WARMUP, TaskIds),
    )


def target_of(value: StreamsMemberTargetValue) -> Tasks:
    return {
        **_read(Role.ACTIVE, value.active_tasks),
        **_read(Role.STANDBY, value.standby_tasks),
        **_read(Role.WARMUP, value.warmup_tasks),
    }


def current_record(current: CurrentTasks) -> StreamsMemberCurrentValue:
    return StreamsMemberCurrentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=_STATE_NUMBERS[current.state],
        active_tasks=_stored(current.assigned, Role.ACTIVE),
        standby_tasks=_stored(current.assigned, Role.STANDBY),
        warmup_tasks=_stored(current.assigned, Role.WARMUP),
        active_tasks_pending_revocation=_stored(current.revoking, Role.ACTIVE),
        standby_tasks_pending_revocation=_stored(current.revoking, Role.STANDBY),
        warmup_tasks_pending_revocation=_stored(current.revoking, Role.WARMUP),
    )


def _stored(owned: Mapping[RoleIn, Mapping[int, int]], role: Role) -> tuple[AssignedTasks, ...]:
    """Only active tasks have the epochs in which they were assigned: for the offsets that are committed for them."""
    return tuple(
        AssignedTasks(
            subtopology_id=key.subtopology_id,
            partitions=tuple(sorted(tasks)),
            assignment_epochs=tuple(tasks[index] for index in sorted(tasks)) if role is Role.ACTIVE else None,
        )
        for key, tasks in sorted(owned.items())
        if key.role is role and tasks
    )


def current_of(value: StreamsMemberCurrentValue) -> CurrentTasks:
    """A state that is not known is taken for stable: the member gets what its target has, and gives up the rest."""

    def owned(*roles: tuple[AssignedTasks, ...]) -> dict[RoleIn, dict[int, int]]:
        return {
            RoleIn(role, each.subtopology_id): _with_epochs(each, value.member_epoch)
            for role, ids in zip(Role, roles)
            for each in ids
        }

    return Current(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=_STATES.get(value.state, MemberState.STABLE),
        assigned=owned(value.active_tasks, value.standby_tasks, value.warmup_tasks),
        revoking=owned(
            value.active_tasks_pending_revocation,
            value.standby_tasks_pending_revocation,
            value.warmup_tasks_pending_revocation,
        ),
    )


def _with_epochs(stored: AssignedTasks, member_epoch: int) -> dict[int, int]:
    epochs = stored.assignment_epochs
    if epochs is None or len(epochs) != len(stored.partitions):
        epochs = (member_epoch,) * len(stored.partitions)
    return dict(zip(stored.partitions, epochs))
