"""One partition of `__consumer_offsets`: its groups, and their committed offsets.

Owns the effects of requests on the partition's groups. `table.py` has the tables, which only records change, and
`offsets.py` the requests about offsets. A consumer gets only committed offsets, and they never go back when the
coordinator moves. Groups are ahead of the log by what they have decided, and members until their group settles.

It must not know of leaders or high watermarks; it is called only while its broker leads the partition.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.coordinator.consumer.topics import Topics, every_topic
from tanist.coordinator.consumer_groups import changed
from tanist.coordinator.effects import (
    NEVER_MS,
    Answer,
    Append,
    ConsumerGroupChanged,
    Effect,
    GroupDeleted,
    MarkerAppend,
    OffsetsDeleted,
    OffsetsStored,
    group_error,
)
from tanist.coordinator.group import Group, JoinContext
from tanist.coordinator.membership import GroupState
from tanist.coordinator.offsets import GroupOffsets, offsets_written, tombstones_of
from tanist.coordinator.rebalance import GroupSettings, join_refused, sync_refused
from tanist.coordinator.share.group import ShareGroup
from tanist.coordinator.streams.group import StreamsGroup
from tanist.wire.errors import ErrorCode
from tanist.wire.group_records import OffsetCommitKey
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.delete_groups_response import DeletableGroupResult
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.heartbeat_response import HeartbeatResponse
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.leave_group_request import MemberIdentity
from tanist.wire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from tanist.wire.messages.sync_group_request import SyncGroupRequest

_NO_ERROR: Final = int(ErrorCode.NONE)


class GroupShard(GroupOffsets):
    """The groups of one partition."""

    def __init__(self, settings: GroupSettings, topics: Topics) -> None:
        super().__init__(settings, topics)
        # When to look at groups: (time, number, group id). A group has one entry that counts, noted in `_queued_ms`.
        self._wakes: list[tuple[int, int, str]] = []
        self._queued_ms: dict[str, int] = {}
        self._wake_number = 0

    # -- records

    def loaded(self, now_ms: int) -> list[Effect]:
        """All records were replayed: from now on members' session timeouts run."""
        effects: list[Effect] = []
        for group in self.groups.values():
            effects += group.loaded(now_ms)
            self._queue(group)
        return effects

    def apply(self, append: Append | MarkerAppend) -> list[Effect]:
        """An append is committed: its offsets count, or those of the transaction that it ends."""
        if isinstance(append, MarkerAppend):
            self.replay_marker(append.producer_id, committed=append.committed)
        elif append.producer is not None:
            for key, value in append.records:
                self.replay_pending(append.producer[0], key, value)
        else:
            for key, value in append.records:
                if isinstance(key, OffsetCommitKey):  # the rest was applied when it was decided
                    self.replay(key, value)
            if append.undo:  # it may have deleted the group, which had its offsets until now
                self.forget_unused(append.group_id)
        return []

    def written(self, append: Append | MarkerAppend, error: int, now_ms: int) -> list[Effect]:
        """An append is committed (and was applied), or was refused, or has taken too long: answer, once."""
        if isinstance(append, MarkerAppend):
            return [Answer(append.ticket, error)]
        effects: list[Effect] = []
        if append.undo and error and error != ErrorCode.REQUEST_TIMED_OUT:
            ahead = self.classic(append.group_id)
            self.take_back(append.group_id, append.undo, append.before, now_ms)
            if ahead is not None and self.classic(append.group_id) is not ahead:
                effects += ahead.dismiss(group_error(error))  # it was never made
        return self._after_event(append.group_id, effects + self._answers(append, error, now_ms))

    def _answers(self, append: Append, error: int, now_ms: int) -> list[Effect]:
        purpose = append.purpose
        if isinstance(purpose, ConsumerGroupChanged):
            return changed(purpose, error)
        if isinstance(purpose, OffsetsStored | OffsetsDeleted):
            return offsets_written(purpose, error)
        if isinstance(purpose, GroupDeleted):
            if purpose.ticket is None:
                return []  # nobody asked
            result = DeletableGroupResult(group_id=append.group_id, error_code=group_error(error))
            return [Answer(purpose.ticket, result)]
        group = self.classic(append.group_id)
        return [] if group is None else group.written(purpose, error, now_ms)

    def dismiss(self, error: int) -> list[Effect]:
        """Another broker has the partition: this one no longer answers waiting clients."""
        classic = (group for group in self.groups.values() if isinstance(group, Group))
        return [effect for group in classic for effect in group.dismiss(error)]

    # -- members

    def join(self, request: JoinGroupRequest, context: JoinContext, now_ms: int) -> list[Effect]:
        error = self._join_error(request)
        if error:
            return [join_refused(error, context.ticket, request.member_id)]
        effects: list[Effect] = []
        consumers = self.consumer(request.group_id)
        if consumers is not None and request.member_id and not consumers.members:
            return [join_refused(ErrorCode.UNKNOWN_MEMBER_ID, context.ticket, request.member_id)]
        if consumers is not None and consumers.members:
            return self._after_event(request.group_id, self.consumers.join(request, context, now_ms))
        if consumers is not None:
            effects += self.consumers.make_way(consumers, now_ms)
        group = self.classic(request.group_id)
        if group is None and request.group_id in self.groups:
            return [join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, context.ticket, request.member_id)]
        if group is None:
            group = self.groups[request.group_id] = Group(request.group_id, self._settings)
        return self._after_event(request.group_id, effects + group.join(request, context, now_ms))

    def _join_error(self, request: JoinGroupRequest) -> int:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        settings = self._settings
        if not settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if request.member_id and request.group_id not in self.groups:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return _NO_ERROR

    def sync(self, request: SyncGroupRequest, ticket: object, now_ms: int) -> list[Effect]:
        group = self._of_members(request.group_id)
        if group is None:
            return [sync_refused(_unknown_member(request.group_id), ticket)]
        if isinstance(group, ConsumerGroup):
            return self._after_event(request.group_id, self.consumers.sync(request, ticket, now_ms))
        return self._after_event(request.group_id, group.sync(request, ticket, now_ms))

    def _of_members(self, group_id: str) -> Group | ConsumerGroup | None:
        """The group, if members of the classic protocol can be in it. One without a name has offsets alone."""
        group = self.groups.get(group_id) if group_id else None
        return group if isinstance(group, Group | ConsumerGroup) else None

    def heartbeat(self, request: HeartbeatRequest, ticket: object, now_ms: int) -> list[Effect]:
        group = self._of_members(request.group_id)
        if group is None:
            return [Answer(ticket, HeartbeatResponse(error_code=_unknown_member(request.group_id)))]
        if isinstance(group, ConsumerGroup):
            return self._after_event(request.group_id, self.consumers.classic_heartbeat(request, ticket, now_ms))
        return [Answer(ticket, group.heartbeat(request, now_ms))]

    def consumer_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: tuple[str, str],
        ticket: object,
        now_ms: int,
        may_describe: Callable[[str], bool] = every_topic,
    ) -> list[Effect]:
        """A member of the consumer protocol; `client` is its id and its host, `may_describe` what it may hear of."""
        effects = self.consumers.heartbeat(request, client, ticket, now_ms, may_describe)
        return self._after_event(request.group_id, effects)

    def share_heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: tuple[str, str], ticket: object, now_ms: int
    ) -> list[Effect]:
        """A member of a share group; `client` is its id and its host."""
        return self._after_event(request.group_id, self.shares.heartbeat(request, client, ticket, now_ms))

    def streams_heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: tuple[str, str], ticket: object, now_ms: int
    ) -> list[Effect]:
        """A member of a Streams group; `client` is its id and its host. The ticket gets a `Beaten`."""
        return self._after_event(request.group_id, self.applications.heartbeat(request, client, ticket, now_ms))

    def when_committed(self, ticket: object) -> list[Effect]:
        """The ticket gets an error code when all that was decided so far is committed, or was refused."""
        return [Append("", (), ConsumerGroupChanged(ticket, _NO_ERROR, int))]

    def leave(self, group_id: str, identities: tuple[MemberIdentity, ...], ticket: object, now_ms: int) -> list[Effect]:
        group = self._of_members(group_id)
        if isinstance(group, ConsumerGroup):
            return self._after_event(group_id, self.consumers.leave(group_id, identities, ticket, now_ms))
        if group is None:
            unknown = tuple(
                MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for each in identities
            )
            if not group_id:
                return [Answer(ticket, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))]
            return [Answer(ticket, LeaveGroupResponse(members=unknown))]
        return self._after_event(group_id, group.leave(identities, ticket, now_ms))

    # -- operators

    def delete_group(self, group_id: str, ticket: object) -> list[Effect]:
        """Delete a group without members, and its committed offsets."""
        group = self.groups.get(group_id)
        offsets = tombstones_of(group_id, self.places(group_id))
        if isinstance(group, ConsumerGroup):
            return self.consumers.delete(group_id, offsets, ticket)
        if isinstance(group, ShareGroup):
            return self.shares.delete(group_id, ticket)
        if isinstance(group, StreamsGroup):
            return self.applications.delete(group_id, offsets, ticket)
        if group is None or group.state is not GroupState.EMPTY:
            error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else ErrorCode.NON_EMPTY_GROUP
            return [Answer(ticket, DeletableGroupResult(group_id=group_id, error_code=error))]
        return self._deleted(group, offsets, ticket)

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
            group = self.groups.get(group_id)
            # A heartbeat may have postponed its deadline: then this only queues it again.
            if isinstance(group, ConsumerGroup):
                effects += self.consumers.tick(group, now_ms)
            elif isinstance(group, ShareGroup):
                effects += self.shares.tick(group, now_ms)
            elif isinstance(group, StreamsGroup):
                effects += self.applications.tick(group, now_ms)
            elif group is not None:
                effects += group.tick(now_ms)
            self._queue_or_forget(group_id)
        return effects

    def topics_changed(self) -> None:
        """Topics were created, deleted or extended: consumer groups check at the next heartbeats."""
        for group in self.groups.values():
            if not isinstance(group, Group):
                group.refresh_requested = True

    def _after_event(self, group_id: str, effects: list[Effect]) -> list[Effect]:
        self._queue_or_forget(group_id)
        return effects

    def _queue_or_forget(self, group_id: str) -> None:
        """After an event: queue the group's next deadline, or forget an unused group."""
        self.see_to(group_id)
        group = self.groups.get(group_id)
        if group is not None:
            self._queue(group)

    def _queue(self, group: Group | ConsumerGroup | ShareGroup | StreamsGroup) -> None:
        if group.check_ms < self._queued_ms.get(group.group_id, NEVER_MS):
            self._queued_ms[group.group_id] = group.check_ms
            self._wake_number += 1
            heappush(self._wakes, (group.check_ms, self._wake_number, group.group_id))


def _unknown_member(group_id: str) -> int:
    return ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID
