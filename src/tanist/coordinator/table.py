"""The groups and committed offsets of one partition of `__consumer_offsets`, as the records of its log say.

Owns the tables, and `replay`, the one function that applies a record: to a coordinator that loads its log, and to the
one that has decided the record. Group records count when they are decided (`decide`), so that the next decision builds
on them; offsets count when they are committed in the log. Decisions that the log refuses are taken back, the last
first.

A classic group without a record of its own (of offsets alone, which Apache Kafka calls simple, or one that nobody has
joined yet) is there until it is deleted, or a check of retention finds it unused; offsets make one where there is none.
It must never answer a client, or change a table but for a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.coordinator.consumer.tables import CONSUMER_KEYS
from tanist.coordinator.consumer.topics import Topics
from tanist.coordinator.effects import Append, ConsumerGroupChanged, Effect, GroupRecord
from tanist.coordinator.group import Group
from tanist.coordinator.pending_offsets import PendingOffsets
from tanist.coordinator.rebalance import GroupSettings
from tanist.coordinator.share.group import SHARE_KEYS, ShareGroup
from tanist.coordinator.streams.group import StreamsGroup
from tanist.coordinator.streams.tables import STREAMS_KEYS
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from tanist.wire.schema import ZERO_UUID


class Committed(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = -1
    topic_id: UUID = ZERO_UUID
    expire_timestamp: int = -1
    """For commits of clients that set a retention of their own (before Kafka 2.1)."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The records of a decision, and those that would undo it, the last change first."""

    records: tuple[GroupRecord, ...]
    undo: tuple[GroupRecord, ...]


class GroupTable:
    """The tables of one partition."""

    def __init__(self, settings: GroupSettings, topics: Topics) -> None:
        self._settings = settings
        self._topics = topics
        self.groups: dict[str, Group | ConsumerGroup | ShareGroup | StreamsGroup] = {}
        """Of all protocols: a group is of one."""
        self.offsets: dict[str, dict[tuple[str, int], Committed]] = {}
        """By group, then by topic and partition."""
        self.pending: PendingOffsets[Committed] = PendingOffsets()
        """Those of open transactions."""
        self.records: list[GroupRecord] = []
        """Those of the decision that is being made."""
        self._undo: list[GroupRecord] = []

    def classic(self, group_id: str) -> Group | None:
        """The group, if it is of the classic protocol."""
        group = self.groups.get(group_id)
        return group if isinstance(group, Group) else None

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        """The group, if it is of the consumer protocol (KIP-848)."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def share(self, group_id: str) -> ShareGroup | None:
        """The group, if it is a share group (KIP-932)."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def streams(self, group_id: str) -> StreamsGroup | None:
        """The group, if it is a Streams group (KIP-1071)."""
        group = self.groups.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

    # -- records

    def replay(self, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        """Apply a record; no value is a tombstone."""
        if isinstance(key, OffsetCommitKey):
            self._replay_offset(key, value if isinstance(value, OffsetCommitValue) else None)
        elif isinstance(key, GroupMetadataKey):
            self._replay_classic(key.group, value if isinstance(value, GroupMetadataValue) else None)
        elif isinstance(key, CONSUMER_KEYS):
            if value is not None or self.consumer(key.group) is not None:
                self.open_consumer(key.group).replay(key, value)
        elif isinstance(key, SHARE_KEYS):
            if value is not None or self.share(key.group) is not None:
                self.open_share(key.group).replay(key, value)
        elif isinstance(key, STREAMS_KEYS):
            if value is not None or self.streams(key.group) is not None:
                self.open_streams(key.group).replay(key, value)
        else:
            return
        self.see_to(key.group)

    def _replay_classic(self, group_id: str, value: GroupMetadataValue | None) -> None:
        group = self.classic(group_id)
        if group is None:
            if value is None:
                return  # it has gone over to the consumer protocol
            group = self.groups[group_id] = Group(group_id, self._settings)
        group.stored = value
        if value is None:
            del self.groups[group_id]

    def open_consumer(self, group_id: str) -> ConsumerGroup:
        """The group of the consumer protocol, which may be about to get its first record."""
        group = self.consumer(group_id)
        if group is None:
            group = self.groups[group_id] = ConsumerGroup(group_id, self._settings, self._topics, self.decide)
        return group

    def open_share(self, group_id: str) -> ShareGroup:
        """The share group, which may be about to get its first record."""
        group = self.share(group_id)
        if group is None:
            group = self.groups[group_id] = ShareGroup(group_id, self._settings, self._topics, self.decide)
        return group

    def open_streams(self, group_id: str) -> StreamsGroup:
        """The Streams group, which may be about to get its first record."""
        group = self.streams(group_id)
        if group is None:
            group = self.groups[group_id] = StreamsGroup(group_id, self._settings, self._topics, self.decide)
        return group

    def _replay_offset(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        place = (key.topic, key.partition)
        if value is not None:
            self.offsets.setdefault(key.group, {})[place] = _committed(value)
            self.pending.plain_commit(key.group, place)
            return
        self.pending.removed(key.group, place)
        if key.group in self.offsets:
            self.offsets[key.group].pop(place, None)
            if not self.offsets[key.group]:
                del self.offsets[key.group]

    def replay_pending(self, producer_id: int, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        """Apply a committed record of a transaction that may still be open."""
        if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
            self.pending.add(producer_id, key.group, (key.topic, key.partition), _committed(value))
            self.see_to(key.group)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Apply the end of a producer's transaction."""
        ended = self.pending.groups_of(producer_id)
        self.pending.end(producer_id, committed=committed, apply=self._apply_pending)
        for group_id in ended:
            self.see_to(group_id)

    def _apply_pending(self, group_id: str, place: tuple[str, int], committed: Committed) -> None:
        self.offsets.setdefault(group_id, {})[place] = committed

    def see_to(self, group_id: str) -> None:
        """A group without records and members is none, unless it is classic; offsets make one where there is none."""
        group = self.groups.get(group_id)
        if group is not None and group.is_forgettable and not isinstance(group, Group):
            del self.groups[group_id]
            group = None
        if group is None and self._has_offsets(group_id):
            self.groups[group_id] = Group(group_id, self._settings)

    def forget_unused(self, group_id: str) -> None:
        """A classic group without a record, members and offsets is no more."""
        group = self.classic(group_id)
        if group is not None and group.is_forgettable and not self._has_offsets(group_id):
            del self.groups[group_id]

    def _has_offsets(self, group_id: str) -> bool:
        """Committed ones, or those of an open transaction."""
        return group_id in self.offsets or self.pending.has_group(group_id)

    # -- decisions

    def decide(self, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        """Decide: apply a group's record at once, and have it written."""
        self._undo.append(self._record_before(key))
        self.records.append((key, value))
        self.replay(key, value)

    def _record_before(self, key: CoordinatorKey) -> GroupRecord:
        """The record that would restore the present state of this key."""
        if isinstance(key, GroupMetadataKey):
            classic = self.classic(key.group)
            return key, None if classic is None else classic.stored
        group: ConsumerGroup | ShareGroup | StreamsGroup | None = None
        if isinstance(key, CONSUMER_KEYS):
            group = self.consumer(key.group)
        elif isinstance(key, SHARE_KEYS):
            group = self.share(key.group)
        elif isinstance(key, STREAMS_KEYS):
            group = self.streams(key.group)
        return (key, None) if group is None else group.record_before(key)

    def decided(self) -> Decided:
        """The decisions since the last call."""
        decided = Decided(tuple(self.records), tuple(reversed(self._undo)))
        self.records, self._undo = [], []
        return decided

    def append(
        self,
        group_id: str,
        ticket: object,
        response: Any,
        refusal: Callable[[int], Any] | None,
        *,
        first: tuple[GroupRecord, ...] = (),
        then: Iterable[Effect] = (),
        before: Group | None = None,
    ) -> Append:
        """Have the records of the decision written, after `first`; `then`: what to do when they are committed."""
        decided = self.decided()
        purpose = ConsumerGroupChanged(ticket, response, refusal, tuple(then))
        return Append(group_id, (*first, *decided.records), purpose, undo=decided.undo, before=before)

    def take_back(self, group_id: str, undo: Iterable[GroupRecord], before: Group | None, now_ms: int) -> None:
        """A decision was refused, and was never made. `before`: the classic group that it has ended or changed."""
        for key, value in undo:
            self.replay(key, value)
        if before is not None:
            undone = self.classic(group_id)
            before.stored = None if undone is None else undone.stored
            self.groups[group_id] = before  # with members that wait, which no record has
        self.see_to(group_id)
        group = self.groups.get(group_id)
        if group is not None and not isinstance(group, Group):
            group.taken_back(now_ms)


def _committed(value: OffsetCommitValue) -> Committed:
    return Committed(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.topic_id,
        value.expire_timestamp,
    )
