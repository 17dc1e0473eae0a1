"""One share group: its heartbeats, its epochs, and which share partitions have their state (KIP-932).

As in a consumer group, the group's epoch grows when members or topics change, and the target assignment has the epoch
for which it was made. Members share partitions, so a member takes over its target at once and gives up nothing first.
Only share partitions whose state is there are assigned: the state is asked for when a topic is first subscribed to.

Decisions are records, answered when they are committed; replaying a record is the only thing that changes the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from uuid import UUID

from tanist.coordinator.consumer.assignors import Subscriber
from tanist.coordinator.consumer.member import Subscription, Target, target_of, target_record
from tanist.coordinator.consumer.topics import Topics, hash_of
from tanist.coordinator.effects import GroupRecord, Refused
from tanist.coordinator.rebalance import GroupSettings
from tanist.coordinator.sessions import MemberSessions
from tanist.coordinator.share.assignor import assign_simple
from tanist.coordinator.share.records import (
    SHARE_KEYS,
    Named,
    Partitions,
    member_of,
    member_record,
    partitions_of,
    partitions_record,
)
from tanist.wire.consumer_group_records import (
    MemberTargetValue,
    TargetAssignmentValue,
    TargetPartitions,
)
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from tanist.wire.share_group_records import (
    ShareGroupKey,
    ShareGroupValue,
    ShareMemberCurrentKey,
    ShareMemberCurrentValue,
    ShareMemberKey,
    ShareMemberTargetKey,
    ShareMemberValue,
    SharePartitionsKey,
    SharePartitionsValue,
    ShareTargetKey,
)

PROTOCOL_TYPE: Final = "share"
JOINING_EPOCH, LEAVING_EPOCH = 0, -1

Decide = Callable[[CoordinatorKey, CoordinatorValue | None], None]

__all__ = ["SHARE_KEYS", "ShareGroup", "ShareGroupState"]


class ShareGroupState(Enum):
    """States of a share group, by Kafka's names."""

    EMPTY = "Empty"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class ShareCurrent:
    """A member's assignment."""

    epoch: int = 0
    previous_epoch: int = -1
    assigned: Target = field(default_factory=dict)


class ShareTables:
    """A share group's state, from its records."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.exists = False
        """Whether the group's own record exists."""
        self.epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, Subscription] = {}
        self.target_epoch = 0
        self.targets: dict[str, Target] = {}
        self.currents: dict[str, ShareCurrent] = {}
        self.partitions: Partitions | None = None
        """None: there is no record of them."""

    @property
    def is_forgettable(self) -> bool:
        """Nothing is left of it."""
        return not (self.exists or self.members or self.currents or self.targets or self.partitions is not None)

    def replay(self, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        """Replay one record; no value is a tombstone."""
        if isinstance(key, ShareMemberCurrentKey):
            self.currents.pop(key.member_id, None)
            if isinstance(value, ShareMemberCurrentValue):
                assigned = target_of(MemberTargetValue(topic_partitions=value.assigned_partitions))
                self.currents[key.member_id] = ShareCurrent(value.member_epoch, value.previous_member_epoch, assigned)
        elif isinstance(key, ShareMemberKey):
            self.members.pop(key.member_id, None)
            if isinstance(value, ShareMemberValue):
                self.members[key.member_id] = member_of(value)
        elif isinstance(key, ShareMemberTargetKey):
            self.targets.pop(key.member_id, None)
            if isinstance(value, MemberTargetValue):
                self.targets[key.member_id] = target_of(value)
        elif isinstance(key, ShareGroupKey):
            found = value if isinstance(value, ShareGroupValue) else None
            self.exists = found is not None
            self.epoch, self.metadata_hash = (0, 0) if found is None else (found.epoch, found.metadata_hash)
        elif isinstance(key, ShareTargetKey):
            self.target_epoch = value.assignment_epoch if isinstance(value, TargetAssignmentValue) else 0
        elif isinstance(key, SharePartitionsKey):
            self.partitions = partitions_of(value) if isinstance(value, SharePartitionsValue) else None

    def record_before(self, key: CoordinatorKey) -> GroupRecord:
        """The record that would restore the present state of this key."""
        value: CoordinatorValue | None = None
        if isinstance(key, ShareMemberCurrentKey):
            current = self.currents.get(key.member_id)
            value = None if current is None else _current_record(current)
        elif isinstance(key, ShareMemberKey):
            member = self.members.get(key.member_id)
            value = None if member is None else member_record(member)
        elif isinstance(key, ShareMemberTargetKey):
            target = self.targets.get(key.member_id)
            value = None if target is None else target_record(target)
        elif isinstance(key, ShareGroupKey):
            value = ShareGroupValue(epoch=self.epoch, metadata_hash=self.metadata_hash) if self.exists else None
        elif isinstance(key, ShareTargetKey):
            value = TargetAssignmentValue(assignment_epoch=self.target_epoch) if self.target_epoch else None
        elif isinstance(key, SharePartitionsKey):
            value = None if self.partitions is None else partitions_record(self.partitions)
        return key, value

    def tombstones(self) -> list[GroupRecord]:
        """The tombstones that remove the group, members first."""
        group = self.group_id
        keys: list[CoordinatorKey] = []
        keys += [ShareMemberCurrentKey(group=group, member_id=each) for each in self.currents]
        keys += [ShareMemberTargetKey(group=group, member_id=each) for each in self.targets]
        if self.target_epoch:
            keys.append(ShareTargetKey(group=group))
        keys += [ShareMemberKey(group=group, member_id=each) for each in self.members]
        if self.partitions is not None:
            keys.append(SharePartitionsKey(group=group))
        keys.append(ShareGroupKey(group=group))
        return [(key, None) for key in keys]


class ShareGroup(ShareTables, MemberSessions):
    """A share group, as its coordinator sees it."""

    kind = "share"
    protocol_type = PROTOCOL_TYPE

    def __init__(self, group_id: str, settings: GroupSettings, topics: Topics, decide: Decide) -> None:
        ShareTables.__init__(self, group_id)
        MemberSessions.__init__(self)
        self.emit = decide
        """Decide: apply the record at once, and have it written."""
        self.settings = settings
        self.topics = topics
        self.asked_ms: dict[UUID, int] = {}
        """When this coordinator has last asked for the state of a topic's partitions."""
        self.looked_ms: int | None = None
        """When it has last looked whether the states are still there."""

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def stateful(self) -> Partitions:
        return self.partitions or Partitions()

    def member_ids(self) -> Collection[str]:
        return self.members.keys()

    def session_timeout_ms(self, member_id: str) -> int:
        return self.settings.share_timing_of(self.group_id).session_timeout_ms

    def current(self, member_id: str) -> ShareCurrent:
        return self.currents.get(member_id) or ShareCurrent()

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset(name for each in self.members.values() for name in each.topic_names)

    # -- heartbeats

    def heartbeat(
        self, beat: ShareGroupHeartbeatRequest, client_id: str, client_host: str, now_ms: int
    ) -> ShareGroupHeartbeatResponse:
        """A member joins, or sends a heartbeat. `Refused` if it or its epoch is not known."""
        member_id, joining = beat.member_id, beat.member_epoch == JOINING_EPOCH
        before = self.members.get(member_id)
        if before is None and len(self.members) >= self.settings.share_max_size:
            raise Refused(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {self.settings.share_max_size} members.",
            )
        if before is None and not joining:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        if not joining:
            self._check_epoch(member_id, beat.member_epoch)
        old = before or Subscription()
        names = beat.subscribed_topic_names
        member = Subscription(
            rack_id=beat.rack_id if beat.rack_id is not None else old.rack_id,
            client_id=client_id,
            client_host=client_host,
            topic_names=old.topic_names if names is None else tuple(sorted(set(names))),
        )
        if member != before:
            self.emit(ShareMemberKey(group=self.group_id, member_id=member_id), member_record(member))
        self._update_epoch_and_target(before is None or before.topic_names != member.topic_names)
        had = self.currents.get(member_id)
        has = self._reconcile(member_id)
        self.heard_of(member_id, now_ms)
        whole = joining or names is not None or had is None or had.assigned != has.assigned
        return ShareGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=has.epoch,
            heartbeat_interval_ms=self.settings.share_timing_of(self.group_id).heartbeat_interval_ms,
            assignment=_assignment(has.assigned) if whole else None,
        )

    def _check_epoch(self, member_id: str, epoch: int) -> None:
        current = self.current(member_id)
        if epoch > current.epoch or (epoch < current.epoch and epoch != current.previous_epoch):
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The member's epoch {epoch} is not {current.epoch}, nor the one before; it must rejoin.",
            )

    def _update_epoch_and_target(self, changed: bool) -> None:
        bump = changed or (self.target_epoch >= self.epoch and self._something_is_not_assigned())
        if bump or self.refresh_requested:
            self.refresh_requested = False
            self._bump_if(bump)
        if self.target_epoch < self.epoch:
            self._make_target()

    def _bump_if(self, bump: bool) -> None:
        metadata_hash = hash_of(self._existing_topics())
        if bump or metadata_hash != self.metadata_hash or not self.exists:
            value = ShareGroupValue(epoch=self.epoch + 1, metadata_hash=metadata_hash)
            self.emit(ShareGroupKey(group=self.group_id), value)

    def _existing_topics(self) -> dict[str, tuple[UUID, int]]:
        found = {name: self.topics.find(name) for name in self.subscribed_topics()}
        return {name: topic for name, topic in found.items() if topic is not None}

    def _something_is_not_assigned(self) -> bool:
        """Whether the state of share partitions has come since the target was made."""
        assigned: dict[UUID, set[int]] = {}
        for target in self.targets.values():
            for topic_id, indexes in target.items():
                assigned.setdefault(topic_id, set()).update(indexes)
        names = self.subscribed_topics()
        return any(
            named.name in names and assigned.get(topic_id, set()) != named.partitions
            for topic_id, named in self.stateful.initialized.items()
        )

    def _make_target(self) -> None:
        ids = {name: topic_id for name, (topic_id, _) in self._existing_topics().items()}
        members = {
            member_id: Subscriber(
                topics=frozenset(ids[name] for name in member.topic_names if name in ids),
                instance_id=None,
                target=self.targets.get(member_id, {}),
            )
            for member_id, member in self.members.items()
        }
        there = {
            topic_id: named.partitions
            for topic_id, named in self.stateful.initialized.items()
            if topic_id in ids.values()
        }
        for member_id, target in assign_simple(members, there).items():
            if self.targets.get(member_id) != target:
                self.emit(ShareMemberTargetKey(group=self.group_id, member_id=member_id), target_record(target))
        self.emit(ShareTargetKey(group=self.group_id), TargetAssignmentValue(assignment_epoch=self.epoch))

    def _reconcile(self, member_id: str) -> ShareCurrent:
        """The member takes over its target, as far as it has subscribed to it."""
        current = self.current(member_id)
        names = self.members[member_id].topic_names
        assigned = {
            topic_id: indexes
            for topic_id, indexes in self.targets.get(member_id, {}).items()
            if self.topics.name_of(topic_id) in names
        }
        if current.epoch == self.target_epoch and current.assigned == assigned and member_id in self.currents:
            return current
        previous = current.epoch if current.epoch != self.target_epoch else current.previous_epoch
        has = ShareCurrent(self.target_epoch, previous, assigned)
        self.emit(ShareMemberCurrentKey(group=self.group_id, member_id=member_id), _current_record(has))
        return has

    # -- the state of share partitions

    def ask_for_state(self, now_ms: int, retry_ms: int) -> dict[UUID, frozenset[int]]:
        """The share partitions of subscribed topics without state, which is asked for now; after a while, again."""
        wanted: dict[UUID, frozenset[int]] = {}
        known = self.stateful
        for topic_id, count in self._existing_topics().values():
            there = known.indexes(topic_id, initialized=True)
            if now_ms - self.asked_ms.get(topic_id, now_ms - retry_ms) < retry_ms:
                there |= known.indexes(topic_id, initialized=False)
            missing = frozenset(range(count)) - there
            if missing:
                wanted[topic_id] = missing
        self.initializing(wanted, now_ms)
        return wanted

    def look_for_state(self, now_ms: int, pause_ms: int) -> dict[UUID, frozenset[int]]:
        """The share partitions of subscribed topics, to see whether their states are there, once in a while.

        An unclean election of their topic may take states away; nobody else would have them made again.
        """
        if self.looked_ms is not None and now_ms - self.looked_ms < pause_ms:
            return {}
        first, self.looked_ms = self.looked_ms is None, now_ms
        names = self.subscribed_topics()
        initialized = {} if first else self.stateful.initialized
        return {topic_id: each.partitions for topic_id, each in initialized.items() if each.name in names}

    def missed(self, partitions: Mapping[UUID, Iterable[int]]) -> None:
        """These have no state any more."""
        self._put(self.stateful.without_initialized({each: self._named(each, partitions[each]) for each in partitions}))

    def initializing(self, wanted: Mapping[UUID, Iterable[int]], now_ms: int) -> None:
        """The state of these is asked for."""
        if wanted:
            self.asked_ms.update(dict.fromkeys(wanted, now_ms))
            self._put(self.stateful.with_initializing({each: self._named(each, wanted[each]) for each in wanted}))

    def initialized(self, partitions: Mapping[UUID, Iterable[int]], *, failed: bool) -> None:
        """The state of these is there, or (`failed`) could not be had."""
        named = {topic_id: self._named(topic_id, indexes) for topic_id, indexes in partitions.items()}
        self._put(self.stateful.without_initializing(named) if failed else self.stateful.with_initialized(named))

    def deleting(self, topic_ids: Iterable[UUID]) -> dict[UUID, frozenset[int]]:
        """The state of these topics is being deleted: their partitions."""
        known = self.stateful
        partitions: dict[UUID, frozenset[int]] = {}
        for topic_id in topic_ids:
            indexes = known.indexes(topic_id, initialized=True) | known.indexes(topic_id, initialized=False)
            found = self.topics.find(self.topics.name_of(topic_id) or "")
            if topic_id in known.deleting and found is not None:
                indexes |= frozenset(range(found[1]))
            if indexes:
                partitions[topic_id] = indexes
        self._put(known.with_deleting({each: self._named(each, ()).name for each in partitions}))
        return partitions

    def deleted(self, topic_ids: Iterable[UUID]) -> None:
        """The state of these topics is gone, or the topics are."""
        after = self.stateful.without(topic_ids)
        if after != self.stateful:
            self._put(after)

    def _named(self, topic_id: UUID, indexes: Iterable[int]) -> Named:
        return Named(self.topics.name_of(topic_id) or "<UNKNOWN>", frozenset(indexes))

    def _put(self, partitions: Partitions) -> None:
        self.emit(SharePartitionsKey(group=self.group_id), partitions_record(partitions))

    # -- leaving

    def remove(self, member_ids: Iterable[str]) -> None:
        """Remove members; others get their partitions in the next epoch."""
        for member_id in member_ids:
            for key in (ShareMemberCurrentKey, ShareMemberTargetKey, ShareMemberKey):
                self.emit(key(group=self.group_id, member_id=member_id), None)
            self.forget_deadlines(member_id)
        self._bump_if(True)


def _current_record(current: ShareCurrent) -> ShareMemberCurrentValue:
    return ShareMemberCurrentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        assigned_partitions=tuple(
            TargetPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes)))
            for topic_id, indexes in sorted(current.assigned.items())
        ),
    )


def _assignment(assigned: Target) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes)))
            for topic_id, indexes in sorted(assigned.items())
        )
    )
