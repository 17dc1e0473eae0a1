"""The tables of a Streams group, from its records: its epoch, topology, members, target, and present assignments.

Every change is a record, as in a consumer group (`consumer.tables`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tanist.coordinator.consumer.member import Current
from tanist.coordinator.consumer.static_members import StaticMembers
from tanist.coordinator.effects import GroupRecord
from tanist.coordinator.streams.tasks import (
    INITIAL_EPOCH,
    CurrentTasks,
    RoleIn,
    Tasks,
    current_of,
    current_record,
    target_of,
    target_record,
)
from tanist.wire.consumer_group_records import TargetAssignmentValue
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.streams_group_records import (
    StreamsGroupKey,
    StreamsGroupValue,
    StreamsMemberCurrentKey,
    StreamsMemberCurrentValue,
    StreamsMemberKey,
    StreamsMemberTargetKey,
    StreamsMemberTargetValue,
    StreamsMemberValue,
    StreamsTargetKey,
    StreamsTopologyKey,
    StreamsTopologyValue,
)

STREAMS_KEYS = (
    StreamsGroupKey,
    StreamsMemberKey,
    StreamsTargetKey,
    StreamsMemberTargetKey,
    StreamsMemberCurrentKey,
    StreamsTopologyKey,
)


class StreamsTables:
    """A Streams group's state, from its records."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.stored: StreamsGroupValue | None = None
        """The group's own record."""
        self.topology: StreamsTopologyValue | None = None
        self.members: dict[str, StreamsMemberValue] = {}
        self.static_members = StaticMembers()
        self.target_epoch = INITIAL_EPOCH
        self.targets: dict[str, Tasks] = {}
        self.currents: dict[str, CurrentTasks] = {}
        self.holders: dict[tuple[str, int], set[tuple[RoleIn, str]]] = {}
        """By subtopology and partition: who has a task or has yet to give it up, and in which role."""

    @property
    def epoch(self) -> int:
        return INITIAL_EPOCH if self.stored is None else self.stored.epoch

    def current(self, member_id: str) -> CurrentTasks:
        return self.currents.get(member_id) or Current()

    @property
    def is_forgettable(self) -> bool:
        """Nothing is left of it."""
        return not (
            self.stored is not None or self.topology is not None or self.members or self.currents or self.targets
        )

    # -- records

    def replay(self, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        """Replay one record; no value is a tombstone."""
        if isinstance(key, StreamsMemberCurrentKey):
            self._replay_current(key.member_id, value if isinstance(value, StreamsMemberCurrentValue) else None)
        elif isinstance(key, StreamsMemberKey):
            before = self.members.pop(key.member_id, None)
            after = value if isinstance(value, StreamsMemberValue) else None
            if after is not None:
                self.members[key.member_id] = after
            self.static_members.replayed(key.member_id, before, after)
        elif isinstance(key, StreamsMemberTargetKey):
            self.targets.pop(key.member_id, None)
            if isinstance(value, StreamsMemberTargetValue):
                self.targets[key.member_id] = target_of(value)
        elif isinstance(key, StreamsGroupKey):
            self.stored = value if isinstance(value, StreamsGroupValue) else None
        elif isinstance(key, StreamsTargetKey):
            self.target_epoch = value.assignment_epoch if isinstance(value, TargetAssignmentValue) else INITIAL_EPOCH
        elif isinstance(key, StreamsTopologyKey):
            self.topology = value if isinstance(value, StreamsTopologyValue) else None

    def _replay_current(self, member_id: str, value: StreamsMemberCurrentValue | None) -> None:
        before = self.currents.pop(member_id, None)
        if before is not None:
            for role_in, index in _places(before):
                place = (role_in.subtopology_id, index)
                self.holders[place].discard((role_in, member_id))
                if not self.holders[place]:
                    del self.holders[place]
        if value is not None:
            current = self.currents[member_id] = current_of(value)
            for role_in, index in _places(current):
                self.holders.setdefault((role_in.subtopology_id, index), set()).add((role_in, member_id))

    def record_before(self, key: CoordinatorKey) -> GroupRecord:
        """The record that would restore the present state of this key."""
        value: CoordinatorValue | None = None
        if isinstance(key, StreamsMemberCurrentKey):
            current = self.currents.get(key.member_id)
            value = None if current is None else current_record(current)
        elif isinstance(key, StreamsMemberKey):
            value = self.members.get(key.member_id)
        elif isinstance(key, StreamsMemberTargetKey):
            target = self.targets.get(key.member_id)
            value = None if target is None else target_record(target)
        elif isinstance(key, StreamsGroupKey):
            value = self.stored
        elif isinstance(key, StreamsTargetKey):
            if self.target_epoch > INITIAL_EPOCH:
                value = TargetAssignmentValue(assignment_epoch=self.target_epoch)
        elif isinstance(key, StreamsTopologyKey):
            value = self.topology
        return key, value

    def tombstones(self) -> list[GroupRecord]:
        """The tombstones that remove the group, members first."""
        group = self.group_id
        keys: list[CoordinatorKey] = []
        keys += [StreamsMemberCurrentKey(group=group, member_id=each) for each in self.currents]
        keys += [StreamsMemberTargetKey(group=group, member_id=each) for each in self.targets]
        if self.target_epoch > INITIAL_EPOCH:
            keys.append(StreamsTargetKey(group=group))
        keys += [StreamsMemberKey(group=group, member_id=each) for each in self.members]
        keys.append(StreamsGroupKey(group=group))
        if self.topology is not None:
            keys.append(StreamsTopologyKey(group=group))
        return [(key, None) for key in keys]

    def is_on(self, process_id: str, key: RoleIn, index: int) -> bool:
        """Whether a member of this process has the task, in whatever role."""
        holders = self.holders.get((key.subtopology_id, index), ())
        return any(self.members[each].process_id == process_id for _, each in holders if each in self.members)


def _places(current: CurrentTasks) -> list[tuple[RoleIn, int]]:
    owned: tuple[Mapping[RoleIn, Mapping[int, int]], ...] = (current.assigned, current.revoking)
    return [(role_in, index) for each in owned for role_in, tasks in each.items() for index in tasks]
