"""The tables of a consumer group, from its records: its epoch, members, target, and present assignments.

Every change is a record: the group decides by emitting records, and `coordinator/table.py` replays them here, as it
does those of a log that is loaded.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from tanist.coordinator.consumer.member import (
    Current,
    Subscription,
    Target,
    current_of,
    current_record,
    subscription_of,
    subscription_record,
    target_of,
    target_record,
)
from tanist.coordinator.consumer.static_members import StaticMembers
from tanist.coordinator.effects import GroupRecord
from tanist.wire.consumer_group_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    ConsumerMemberValue,
    GroupRegexKey,
    GroupRegexValue,
    MemberCurrentKey,
    MemberCurrentValue,
    MemberTargetKey,
    MemberTargetValue,
    TargetAssignmentKey,
    TargetAssignmentValue,
)
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue

CONSUMER_KEYS = (
    ConsumerGroupKey,
    ConsumerMemberKey,
    TargetAssignmentKey,
    MemberTargetKey,
    MemberCurrentKey,
    GroupRegexKey,
)


class Resolved(NamedTuple):
    """The matches of a regular expression, as of a version of the metadata."""

    topics: tuple[str, ...]
    version: int


class ConsumerTables:
    """A consumer group's state, from its records."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.exists = False
        """Whether the group's own record exists."""
        self.epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, Subscription] = {}
        self.static_members = StaticMembers()
        self.target_epoch = 0
        self.targets: dict[str, Target] = {}
        self.currents: dict[str, Current[UUID]] = {}
        self.owners: dict[tuple[UUID, int], str] = {}
        """The member that has a partition, or has yet to give it up."""
        self.regexes: dict[str, Resolved] = {}

    def current(self, member_id: str) -> Current[UUID]:
        return self.currents.get(member_id) or Current()

    def target(self, member_id: str) -> Target:
        return self.targets.get(member_id) or {}

    # -- records

    def replay(self, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        """Replay one record; no value is a tombstone."""
        if isinstance(key, MemberCurrentKey):
            self._replay_current(key.member_id, value if isinstance(value, MemberCurrentValue) else None)
        elif isinstance(key, ConsumerMemberKey):
            self._replay_member(key.member_id, value if isinstance(value, ConsumerMemberValue) else None)
        elif isinstance(key, MemberTargetKey):
            if isinstance(value, MemberTargetValue):
                self.targets[key.member_id] = target_of(value)
            else:
                self.targets.pop(key.member_id, None)
        elif isinstance(key, ConsumerGroupKey):
            found = value if isinstance(value, ConsumerGroupValue) else None
            self.exists = found is not None
            self.epoch, self.metadata_hash = (found.epoch, found.metadata_hash) if found is not None else (0, 0)
        elif isinstance(key, TargetAssignmentKey):
            made = value if isinstance(value, TargetAssignmentValue) else None
            self.target_epoch = 0 if made is None else made.assignment_epoch
        elif isinstance(key, GroupRegexKey):
            if isinstance(value, GroupRegexValue):
                self.regexes[key.regular_expression] = Resolved(tuple(value.topics), value.version)
            else:
                self.regexes.pop(key.regular_expression, None)

    def _replay_member(self, member_id: str, value: ConsumerMemberValue | None) -> None:
        before = self.members.pop(member_id, None) if value is None else self.members.get(member_id)
        if value is not None:
            self.members[member_id] = subscription_of(value)
        self.static_members.replayed(member_id, before, value)

    def _replay_current(self, member_id: str, value: MemberCurrentValue | None) -> None:
        before = self.currents.pop(member_id, None)
        if before is not None:
            for owned in (before.assigned, before.revoking):
                for topic_id, indexes in owned.items():
                    for index in indexes:
                        if self.owners.get((topic_id, index)) == member_id:
                            del self.owners[(topic_id, index)]
        if value is not None:
            current = self.currents[member_id] = current_of(value)
            for owned in (current.assigned, current.revoking):
                for topic_id, indexes in owned.items():
                    for index in indexes:
                        self.owners[(topic_id, index)] = member_id

    @property
    def is_forgettable(self) -> bool:
        """Nothing is left of it."""
        return not (self.exists or self.members or self.regexes or self.currents or self.targets)

    def record_before(self, key: CoordinatorKey) -> GroupRecord:
        """The record that would restore the present state of this key."""
        value: CoordinatorValue | None = None
        if isinstance(key, MemberCurrentKey):
            current = self.currents.get(key.member_id)
            value = None if current is None else current_record(current)
        elif isinstance(key, ConsumerMemberKey):
            subscription = self.members.get(key.member_id)
            value = None if subscription is None else subscription_record(subscription)
        elif isinstance(key, MemberTargetKey):
            target = self.targets.get(key.member_id)
            value = None if target is None else target_record(target)
        elif isinstance(key, ConsumerGroupKey):
            value = ConsumerGroupValue(epoch=self.epoch, metadata_hash=self.metadata_hash) if self.exists else None
        elif isinstance(key, TargetAssignmentKey):
            if self.target_epoch:
                value = TargetAssignmentValue(assignment_epoch=self.target_epoch)
        elif isinstance(key, GroupRegexKey):
            resolved = self.regexes.get(key.regular_expression)
            if resolved is not None:
                value = GroupRegexValue(topics=resolved.topics, version=resolved.version)
        return key, value

    def tombstones(self) -> list[GroupRecord]:
        """The tombstones that remove the group, members first."""
        group = self.group_id
        keys: list[CoordinatorKey] = []
        keys += [MemberCurrentKey(group=group, member_id=each) for each in self.currents]
        keys += [MemberTargetKey(group=group, member_id=each) for each in self.targets]
        if self.target_epoch:
            keys.append(TargetAssignmentKey(group=group))
        keys += [ConsumerMemberKey(group=group, member_id=each) for each in self.members]
        keys += [GroupRegexKey(group=group, regular_expression=each) for each in self.regexes]
        keys.append(ConsumerGroupKey(group=group))
        return [(key, None) for key in keys]
