"""One partition of `__consumer_offsets`: its groups, and their committed offsets.

Owns the effects of requests and records on the partition's tables (the table of offsets is in `offsets`). Records are
replayed from the log when this broker takes the partition over, and one by one as decisions are committed. So a
consumer gets only committed offsets, and they never go back when the coordinator moves. Members are ahead of the log
until their group settles.

It must not know of leaders or high watermarks; it is called only while its broker leads the partition.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.coordinator.consumer.tables import CONSUMER_KEYS
from tanist.coordinator.consumer.topics import Topics
from tanist.coordinator.deadlines import NEVER_MS
from tanist.coordinator.effects import (
    Answer,
    Append,
    ConsumerGroupChanged,
    Effect,
    GroupDeleted,
    GroupRecord,
    MarkerAppend,
    OffsetsDeleted,
    OffsetsStored,
    group_error,
)
from tanist.coordinator.group import Group, JoinContext
from tanist.coordinator.membership import GroupState
from tanist.coordinator.offsets import GroupOffsets, offsets_written, tombstones_of
from tanist.coordinator.rebalance import GroupSettings, join_refused, sync_refused
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.errors import ErrorCode
from tanist.wire.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.delete_groups_response import DeletableGroupResult
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.heartbeat_response import HeartbeatResponse
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.leave_group_request import MemberIdentity
from tanist.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from tanist.wire.messages.sync_group_request import SyncGroupRequest

_NO_ERROR: Final = int(ErrorCode.NONE)


class Shard(GroupOffsets):
    """The groups of one partition."""

    def __init__(self, settings: GroupSettings, topics: Topics) -> None:
        super().__init__(settings, topics)
        # When to look at groups: (time, number, group id). A group has one entry that counts, noted in `_queued_ms`.
        self._wakes: list[tuple[int, int, str]] = []
        self._queued_ms: dict[str, int] = {}
        self._wake_number = 0

    # -- records

    def replay(self, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        """A record of the log, while the partition is loaded."""
        if isinstance(key, GroupMetadataKey) and isinstance(value, GroupMetadataValue):
            group = self.groups[key.group] = Group(key.group, self._settings)
            group.restore(value)
        else:
            self._apply(key, value)

    def replay_pending(self, producer_id: int, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        if isinstance(key, OffsetCommitKey) and key.group not in self.consumers.groups:
            self._group(key.group)
        super().replay_pending(producer_id, key, value)

    def loaded(self, now_ms: int) -> list[Effect]:
        """All records were replayed: from now on members' session timeouts run."""
        effects: list[Effect] = []
        for group in self.groups.values():
            effects += group.loaded(now_ms)
            self._queue(group)
        self.consumers.loaded(now_ms)
        for consumer_group in self.consumers.groups.values():
            self._queue(consumer_group)
        return effects

    def apply(self, append: Append | MarkerAppend) -> list[Effect]:
        """A decision of this coordinator is committed, or the end of a transaction."""
        if isinstance(append, MarkerAppend):
            self.replay_marker(append.producer_id, committed=append.committed)
            return []
        if append.producer is not None:
            for pending_key, pending_value in append.records:
                self.replay_pending(append.producer[0], pending_key, pending_value)
            return []
        ahead = isinstance(append.purpose, ConsumerGroupChanged)
        for key, value in append.records:
            if not ahead or isinstance(key, OffsetCommitKey):  # the rest was applied when it was decided
                self._apply(key, value)
        return []

    def _apply(self, key: CoordinatorKey, value: CoordinatorValue | None) -> None:
        if isinstance(key, OffsetCommitKey):
            if isinstance(value, OffsetCommitValue) and key.group not in self.consumers.groups:
                self._group(key.group)
            self.apply_offset(key, value if isinstance(value, OffsetCommitValue) else None)
        elif isinstance(key, GroupMetadataKey) and value is None:
            self.groups.pop(key.group, None)
            self._queued_ms.pop(key.group, None)
            if key.group in self.offsets and key.group not in self.consumers.groups:
                self._group(key.group)
        elif isinstance(key, GroupMetadataKey) and isinstance(value, GroupMetadataValue):
            if key.group in self.groups:
                self.groups[key.group].state_timestamp_ms = value.current_state_timestamp
        elif isinstance(key, CONSUMER_KEYS):
            self.consumers.replay(key, key.group, value)
        # The group in memory already has the state of its other records.

    def written(self, append: Append | MarkerAppend, error: int, now_ms: int) -> list[Effect]:
        """An append is committed (and was applied), or was refused, or has taken too long: answer, once."""
        if isinstance(append, MarkerAppend):
            return [Answer(append.ticket, error)]
        purpose = append.purpose
        if isinstance(purpose, ConsumerGroupChanged):
            answers = self.consumers.written(purpose, error, now_ms)
            self._requeue(append.group_id)
            return answers
        if isinstance(purpose, OffsetsStored | OffsetsDeleted):
            return offsets_written(purpose, error)
        group = self.groups.get(append.group_id)
        if isinstance(purpose, GroupDeleted):
            if error and error != ErrorCode.REQUEST_TIMED_OUT and group is not None:
                group.state = GroupState.EMPTY  # nothing was appended
            if purpose.ticket is None:
                return []  # nobody asked
            result = DeletableGroupResult(group_id=append.group_id, error_code=group_error(error))
            return [Answer(purpose.ticket, result)]
        if group is None:
            return []
        effects = group.written(purpose, error, now_ms)
        self._settle(group)
        return effects

    def dismiss(self, error: int) -> list[Effect]:
        """Another broker has the partition: this one no longer answers waiting clients."""
        return [
            effect
            for group in self.groups.values()
            for member in group.members.values()
            for effect in group.refuse_waiting(member, error)
        ]

    # -- members

    def join(self, request: JoinGroupRequest, context: JoinContext, now_ms: int) -> list[Effect]:
        error = self._join_error(request)
        if error:
            return [join_refused(error, context.ticket, request.member_id)]
        if request.group_id in self.consumers.groups:
            return self._of_consumers(request.group_id, self.consumers.join(request, context, now_ms))
        group = self._group(request.group_id)
        effects = group.join(request, context, now_ms)
        self._settle(group)
        return effects

    def _join_error(self, request: JoinGroupRequest) -> int:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        settings = self._settings
        if not settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if request.member_id and not self.has(request.group_id):
            return ErrorCode.UNKNOWN_MEMBER_ID
        return _NO_ERROR

    def sync(self, request: SyncGroupRequest, ticket: object, now_ms: int) -> list[Effect]:
        if request.group_id in self.consumers.groups:
            return self._of_consumers(request.group_id, self.consumers.sync(request, ticket, now_ms))
        group = self.groups.get(request.group_id)
        if group is None:
            return [sync_refused(_unknown_member(request.group_id), ticket)]
        effects = group.sync(request, ticket, now_ms)
        self._settle(group)
        return effects

    def heartbeat(self, request: HeartbeatRequest, ticket: object, now_ms: int) -> list[Effect]:
        if request.group_id in self.consumers.groups:
            return self._of_consumers(request.group_id, self.consumers.classic_heartbeat(request, ticket, now_ms))
        group = self.groups.get(request.group_id)
        if group is None:
            return [Answer(ticket, HeartbeatResponse(error_code=_unknown_member(request.group_id)))]
        return [Answer(ticket, group.heartbeat(request, now_ms))]

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: tuple[str, str], ticket: object, now_ms: int
    ) -> list[Effect]:
        """A member of the consumer protocol; `client` is its id and its host."""
        return self._of_consumers(request.group_id, self.consumers.heartbeat(request, client, ticket, now_ms))

    def _of_consumers(self, group_id: str, effects: list[Effect]) -> list[Effect]:
        self._requeue(group_id)
        return effects

    def has(self, group_id: str) -> bool:
        """Whether there is such a group, of either protocol."""
        return group_id in self.groups or group_id in self.consumers.groups

    def leave(self, group_id: str, identities: tuple[MemberIdentity, ...], ticket: object, now_ms: int) -> list[Effect]:
        if group_id in self.consumers.groups:
            return self._of_consumers(group_id, self.consumers.leave(group_id, identities, ticket, now_ms))
        group = self.groups.get(group_id)
        if group is None:
            unknown = tuple(
                MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for each in identities
            )
            error = _NO_ERROR if group_id else ErrorCode.INVALID_GROUP_ID
            return [Answer(ticket, LeaveGroupResponse(error_code=error, members=unknown))]
        effects = group.leave(identities, ticket, now_ms)
        self._settle(group)
        return effects

    # -- operators

    def delete_group(self, group_id: str, ticket: object) -> list[Effect]:
        """Delete a group without members, and its committed offsets."""
        if group_id in self.consumers.groups:
            return self.consumers.delete(group_id, tombstones_of(group_id, self.committed(group_id)), ticket)
        group = self.groups.get(group_id)
        if group is None or group.state is not GroupState.EMPTY:
            missing = group is None or group.state is GroupState.DEAD
            error = ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NON_EMPTY_GROUP
            return [Answer(ticket, DeletableGroupResult(group_id=group_id, error_code=error))]
        group.state = GroupState.DEAD
        tombstone: GroupRecord = (GroupMetadataKey(group=group_id), None)
        records = (*tombstones_of(group_id, self.committed(group_id)), tombstone)
        return [Append(group_id, records, GroupDeleted(ticket))]

    # -- time

    @property
    def check_ms(self) -> int:
        """The next deadline."""
        return self._wakes[0][0] if self._wakes else NEVER_MS

    def tick(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        due: list[tuple[int, str]] = []
        while self._wakes and self._wakes[0][0] <= now_ms:
            when_ms, _, group_id = heappop(self._wakes)
            due.append((when_ms, group_id))
        for when_ms, group_id in due:
            # Each once: a group that is due again at once gets the next tick, and delays no other group.
            if self._queued_ms.get(group_id) != when_ms:
                continue
            del self._queued_ms[group_id]
            group, consumers = self.groups.get(group_id), self.consumers.groups.get(group_id)
            # A heartbeat may have postponed its deadline: then this only queues it again.
            if consumers is not None:
                effects += self.consumers.tick(consumers, now_ms)
                self._requeue(group_id)
            elif group is not None:
                effects += group.tick(now_ms)
                self._settle(group)
        return effects

    def topics_changed(self) -> None:
        """Topics were created, deleted or extended: consumer groups check at the next heartbeats."""
        for group in self.consumers.groups.values():
            group.refresh_requested = True

    def _settle(self, group: Group) -> None:
        """After an event: queue the group's next deadline, or forget an unused group."""
        unused = group.group_id not in self.offsets and not self.pending.has_group(group.group_id)
        if group.is_forgettable and unused:
            self.groups.pop(group.group_id, None)
            self._queued_ms.pop(group.group_id, None)
            return
        self._queue(group)

    def _requeue(self, group_id: str) -> None:
        """After an event of a group that is one of the consumer protocol, or was."""
        group = self.consumers.groups.get(group_id) or self.groups.get(group_id)
        if group is not None:
            self._queue(group)

    def _queue(self, group: Group | ConsumerGroup) -> None:
        if group.check_ms < self._queued_ms.get(group.group_id, NEVER_MS):
            self._queued_ms[group.group_id] = group.check_ms
            self._wake_number += 1
            heappush(self._wakes, (group.check_ms, self._wake_number, group.group_id))

    def _group(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, self._settings)
        return group


def _unknown_member(group_id: str) -> int:
    return ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID
