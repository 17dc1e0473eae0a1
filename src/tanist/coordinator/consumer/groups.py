"""The consumer groups of one partition of `__consumer_offsets`, and their conversion from and to the classic protocol.

Turns requests into decisions, and decisions into appends. Memory is ahead of the log here: the next decision builds on
the last one, and an answer waits until all records on which it rests are committed, if need be by an append without
records. Decisions that the log refuses are undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tanist.coordinator.consumer import classic_members, migration
from tanist.coordinator.consumer.group import ConsumerGroup, Decided, Refused
from tanist.coordinator.consumer.member import LEAVING_EPOCH, LEAVING_STATIC_EPOCH
from tanist.coordinator.consumer.topics import Topics
from tanist.coordinator.effects import Answer, Append, ConsumerGroupChanged, Effect, GroupRecord, group_error
from tanist.coordinator.group import Group, JoinContext
from tanist.coordinator.membership import GroupState
from tanist.coordinator.rebalance import GroupSettings, join_refused, sync_refused
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.errors import ErrorCode
from tanist.wire.group_records import GroupMetadataKey
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from tanist.wire.messages.delete_groups_response import DeletableGroupResult
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.heartbeat_response import HeartbeatResponse
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.leave_group_request import MemberIdentity
from tanist.wire.messages.leave_group_response import LeaveGroupResponse
from tanist.wire.messages.sync_group_request import SyncGroupRequest

Refusal = Callable[[int], Any]
"""Makes the response with this error."""


class ConsumerGroups:
    """The consumer groups of one partition."""

    def __init__(self, settings: GroupSettings, topics: Topics, classic: dict[str, Group]) -> None:
        self._settings = settings
        self._topics = topics
        self._classic = classic
        """The groups of the classic protocol: the shard's table."""
        self.groups: dict[str, ConsumerGroup] = {}

    # -- records

    def replay(self, key: CoordinatorKey, group_id: str, value: CoordinatorValue | None) -> None:
        group = self.groups.get(group_id)
        if group is None:
            if value is None:
                return
            group = self.groups[group_id] = ConsumerGroup(group_id, self._settings, self._topics)
        group.replay(key, value)
        if not group.exists and not group.members and not group.regexes and not group.currents and not group.targets:
            del self.groups[group_id]

    def loaded(self, now_ms: int) -> None:
        for group in self.groups.values():
            group.loaded(now_ms)

    # -- requests

    def heartbeat(
        self,
        beat: ConsumerGroupHeartbeatRequest,
        client: tuple[str, str],
        ticket: object,
        now_ms: int,
    ) -> list[Effect]:
        """ConsumerGroupHeartbeat: join, stay, or leave."""

        def refusal(error: int, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
            return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)

        try:
            _check_form(beat, self._settings)
            group, classic = self._find(beat, now_ms)
        except Refused as refused:
            return [Answer(ticket, refusal(refused.error, str(refused)))]
        before = (classic,) if classic is not None else ()
        leaving = beat.member_epoch in (LEAVING_EPOCH, LEAVING_STATIC_EPOCH)
        try:
            response = group.leave(beat) if leaving else group.heartbeat(beat, *client, now_ms)
        except Refused as refused:
            self._take_back(group, group.decided(), before, now_ms)
            return [Answer(ticket, refusal(refused.error, str(refused)))]
        effects: list[Effect] = []
        records: list[GroupRecord] = []
        if classic is not None:
            # Waiting members must join again, and then meet the new protocol.
            effects += _dismissed(classic, ErrorCode.REBALANCE_IN_PROGRESS)
            records.append((GroupMetadataKey(group=group.group_id), None))
        return effects + self._append(group, records, ticket, response, refusal, before, now_ms)

    def _find(self, beat: ConsumerGroupHeartbeatRequest, now_ms: int) -> tuple[ConsumerGroup, Group | None]:
        """The group; and the classic group that this request converts into it, if any."""
        found = self.groups.get(beat.group_id)
        if found is not None:
            return found, None
        classic = self._classic.get(beat.group_id)
        if beat.member_epoch != 0:
            if classic is not None:
                raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{beat.group_id} is not a consumer group")
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {beat.group_id}")
        if classic is None:
            group = self.groups[beat.group_id] = ConsumerGroup(beat.group_id, self._settings, self._topics)
            return group, None
        if not migration.can_upgrade(classic, self._settings):
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{beat.group_id} is a group of the classic protocol")
        if classic.state is GroupState.EMPTY:
            group = ConsumerGroup(beat.group_id, self._settings, self._topics)
        else:
            group = migration.upgraded(classic, self._settings, self._topics, now_ms)
        self.groups[beat.group_id] = group
        del self._classic[beat.group_id]
        return group, classic

    def join(self, request: JoinGroupRequest, context: JoinContext, now_ms: int) -> list[Effect]:
        """JoinGroup, to a consumer group."""
        group = self.groups[request.group_id]
        member_id = request.member_id
        if not member_id and request.group_instance_id is None and context.needs_known_id:
            return [join_refused(ErrorCode.MEMBER_ID_REQUIRED, context.ticket, context.new_member_id)]
        holder = group.static_members.get(request.group_instance_id or "")
        try:
            if member_id and holder not in (None, member_id):
                raise Refused(ErrorCode.FENCED_INSTANCE_ID, f"{request.group_instance_id} is member {holder} now")
            if member_id and request.group_instance_id is not None and holder is None:
                raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id} is not in the group")
            response = classic_members.join(
                group, request, member_id or context.new_member_id, (context.client_id, context.client_host), now_ms
            )
        except Refused as refused:
            self._take_back(group, group.decided(), (), now_ms)
            return [join_refused(refused.error, context.ticket, request.member_id)]

        def refusal(error: int) -> Any:
            return join_refused(error, None, request.member_id).response

        return self._append(group, [], context.ticket, response, refusal, (), now_ms)

    def sync(self, request: SyncGroupRequest, ticket: object, now_ms: int) -> list[Effect]:
        """SyncGroup, to a consumer group."""
        group = self.groups[request.group_id]
        try:
            response = classic_members.sync(group, request, now_ms)
        except Refused as refused:
            return [sync_refused(refused.error, ticket)]
        return self._append(group, [], ticket, response, lambda error: sync_refused(error, None).response, (), now_ms)

    def classic_heartbeat(self, request: HeartbeatRequest, ticket: object, now_ms: int) -> list[Effect]:
        """Heartbeat, to a consumer group."""
        group = self.groups[request.group_id]
        try:
            error = classic_members.heartbeat(
                group, request.member_id, request.group_instance_id, request.generation_id, now_ms
            )
        except Refused as refused:
            return [Answer(ticket, HeartbeatResponse(error_code=refused.error))]
        response = HeartbeatResponse(error_code=error)
        return self._append(group, [], ticket, response, lambda error: HeartbeatResponse(error_code=error), (), now_ms)

    def leave(self, group_id: str, identities: tuple[MemberIdentity, ...], ticket: object, now_ms: int) -> list[Effect]:
        """LeaveGroup, to a consumer group."""
        group = self.groups[group_id]
        response = LeaveGroupResponse(members=classic_members.leave(group, identities))
        return self._append(group, [], ticket, response, lambda error: LeaveGroupResponse(error_code=error), (), now_ms)

    def delete(self, group_id: str, offsets: tuple[GroupRecord, ...], ticket: object) -> list[Effect]:
        """DeleteGroups, for a consumer group: it must be empty. `offsets`: the tombstones of its committed offsets."""

        def result(error: int) -> DeletableGroupResult:
            return DeletableGroupResult(group_id=group_id, error_code=error)

        group = self.groups[group_id]
        if group.members:
            return [Answer(ticket, result(ErrorCode.NON_EMPTY_GROUP))]
        for key, value in group.tombstones():
            group.emit(key, value)
        del self.groups[group_id]
        decided = group.decided()
        purpose = ConsumerGroupChanged(ticket, result(ErrorCode.NONE), result, group, decided.undo, ())
        return [Append(group_id, (*offsets, *decided.records), purpose)]

    # -- time

    def tick(self, group: ConsumerGroup, now_ms: int) -> list[Effect]:
        """Remove members that sent no heartbeat in time, or keep others waiting."""
        overdue = group.overdue(now_ms)
        if overdue:
            group.remove(overdue)
        group.rescan()
        return self._append(group, [], None, None, None, (), now_ms) if overdue else []

    # -- the end of a decision

    def _append(
        self,
        group: ConsumerGroup,
        first: list[GroupRecord],
        ticket: object,
        response: Any,
        refusal: Refusal | None,
        before: tuple[Group, ...],
        now_ms: int,
    ) -> list[Effect]:
        decided = group.decided()
        records = [*first, *decided.records]
        after: Group | None = None
        if any(value is None for _, value in decided.records) and migration.must_downgrade(group):
            # The last member of the new protocol has left.
            value = migration.downgraded(group)
            after = Group(group.group_id, self._settings)
            after.restore(value)
            records += [*group.tombstones(), (GroupMetadataKey(group=group.group_id), value)]
            del self.groups[group.group_id]
            self._classic[group.group_id] = after
        purpose = ConsumerGroupChanged(ticket, response, refusal, group, decided.undo, before)
        effects: list[Effect] = [Append(group.group_id, tuple(records), purpose)]
        if after is not None:
            effects += after.loaded(now_ms)
            effects += after.prepare_rebalance(now_ms)
            after.rescan()
        return effects

    def written(self, purpose: ConsumerGroupChanged, error: int, now_ms: int) -> list[Effect]:
        """A decision is committed, or was refused and is undone."""
        if error and error != ErrorCode.REQUEST_TIMED_OUT:
            group = purpose.group
            if isinstance(group, ConsumerGroup):
                self.groups[group.group_id] = group
                self._classic.pop(group.group_id, None)
                self._take_back(group, Decided((), purpose.undo), purpose.before, now_ms)
        if purpose.ticket is None:
            return []
        if error and purpose.refusal is not None:
            return [Answer(purpose.ticket, purpose.refusal(group_error(error)))]
        return [Answer(purpose.ticket, purpose.response)]

    def _take_back(self, group: ConsumerGroup, decided: Decided, before: Iterable[Group], now_ms: int) -> None:
        group.take_back(decided.undo, now_ms)
        for classic in before:
            self._classic[group.group_id] = classic
            self.groups.pop(group.group_id, None)
        if not group.exists and not group.members:
            self.groups.pop(group.group_id, None)


def _dismissed(classic: Group, error: int) -> list[Effect]:
    return [effect for member in classic.members.values() for effect in classic.refuse_waiting(member, error)]


def _check_form(beat: ConsumerGroupHeartbeatRequest, settings: GroupSettings) -> None:
    """The checks of a request that do not depend on the group (Apache Kafka's)."""

    def refuse(message: str) -> Refused:
        return Refused(ErrorCode.INVALID_REQUEST, message)

    if not beat.group_id.strip():
        raise refuse("GroupId can't be empty.")
    if beat.instance_id is not None and not beat.instance_id.strip():
        raise refuse("InstanceId can't be empty.")
    if beat.rack_id is not None and not beat.rack_id.strip():
        raise refuse("RackId can't be empty.")
    if beat.member_epoch < LEAVING_STATIC_EPOCH:
        raise refuse(f"MemberEpoch is {beat.member_epoch}, but must be greater than or equal to -2.")
    if not beat.member_id.strip():
        raise refuse("MemberId can't be empty.")
    if beat.member_epoch == LEAVING_STATIC_EPOCH and beat.instance_id is None:
        raise refuse("InstanceId can't be null.")
    if beat.member_epoch == 0:
        if beat.rebalance_timeout_ms == -1:
            raise refuse("RebalanceTimeoutMs must be provided in first request.")
        if beat.topic_partitions is None or beat.topic_partitions:
            raise refuse("TopicPartitions must be empty when (re-)joining.")
        if not beat.subscribed_topic_names and not beat.subscribed_topic_regex:
            raise refuse("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    if beat.server_assignor is not None and beat.server_assignor not in settings.assignors:
        known = ", ".join(settings.assignors)
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {beat.server_assignor} is not supported. Supported assignors: {known}.",
        )
