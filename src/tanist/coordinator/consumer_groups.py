"""The requests to the consumer groups of one partition, and their conversion from and to the classic protocol.

Turns requests into decisions of the table, and decisions into appends. An answer waits until all records on which it
rests are committed, if need be by an append without records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tanist.coordinator.consumer import classic_members, migration
from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.coordinator.consumer.member import LEAVING_EPOCH, LEAVING_STATIC_EPOCH
from tanist.coordinator.consumer.topics import every_topic
from tanist.coordinator.effects import Answer, ConsumerGroupChanged, Effect, GroupRecord, Refused, group_error
from tanist.coordinator.group import Group, JoinContext
from tanist.coordinator.membership import GroupState
from tanist.coordinator.rebalance import GroupSettings, join_refused, sync_refused
from tanist.coordinator.table import GroupTable
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
    """The requests to the consumer groups of one partition."""

    def __init__(self, settings: GroupSettings, table: GroupTable) -> None:
        self._settings = settings
        self._table = table

    # -- requests

    def heartbeat(
        self,
        beat: ConsumerGroupHeartbeatRequest,
        client: tuple[str, str],
        ticket: object,
        now_ms: int,
        may_describe: Callable[[str], bool] = every_topic,
    ) -> list[Effect]:
        """ConsumerGroupHeartbeat: join, stay, or leave. `may_describe`: whether the client may hear of a topic."""

        def refusal(error: int, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
            return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)

        before: Group | None = None
        leaving = beat.member_epoch in (LEAVING_EPOCH, LEAVING_STATIC_EPOCH)
        try:
            _check_form(beat, self._settings)
            before = self._upgrading(beat)
            group = self._entered(beat.group_id, before, now_ms)
            group.may_describe = may_describe
            response = group.leave(beat) if leaving else group.heartbeat(beat, *client, now_ms)
        except Refused as refused:
            self._take_back(beat.group_id, before, now_ms)
            return [Answer(ticket, refusal(refused.error, str(refused)))]
        # Waiting members must join again, and then meet the new protocol.
        effects = [] if before is None else before.dismiss(ErrorCode.REBALANCE_IN_PROGRESS)
        return effects + self._append(group.group_id, ticket, response, refusal, now_ms, before)

    def _upgrading(self, beat: ConsumerGroupHeartbeatRequest) -> Group | None:
        """The classic group that this request converts, if it does."""
        classic = self._table.classic(beat.group_id)
        if self._table.consumer(beat.group_id) is not None:
            return None
        if beat.group_id in self._table.groups and classic is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {beat.group_id} is not a consumer group.")
        if beat.member_epoch != 0:
            if classic is not None:
                raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{beat.group_id} is not a consumer group")
            kind = "Group" if beat.member_epoch < 0 else "Consumer group"
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {beat.group_id} not found.")
        if classic is not None and not migration.can_upgrade(classic, self._settings):
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{beat.group_id} is a group of the classic protocol")
        return classic

    def _entered(self, group_id: str, classic: Group | None, now_ms: int) -> ConsumerGroup:
        """The group: as it is, new, or with the members of the classic group."""
        if classic is not None:
            self._table.decide(GroupMetadataKey(group=group_id), None)
        group = self._table.open_consumer(group_id)
        if classic is not None and classic.state is not GroupState.EMPTY:
            try:
                migration.upgrade(classic, group, now_ms)
            except Refused as malformed:  # what a member of the classic group has said
                raise Refused(
                    ErrorCode.GROUP_ID_NOT_FOUND, f"{group_id} is of the classic protocol: {malformed}"
                ) from malformed
        return group

    def join(self, request: JoinGroupRequest, context: JoinContext, now_ms: int) -> list[Effect]:
        """JoinGroup, to a consumer group."""
        group = self._table.open_consumer(request.group_id)
        member_id = request.member_id
        try:
            classic_members.check_protocols(group, request)
            if not member_id and request.group_instance_id is None and context.needs_known_id:
                return [join_refused(ErrorCode.MEMBER_ID_REQUIRED, context.ticket, context.new_member_id)]
            if member_id and request.group_instance_id is not None:
                group.static_members.check_holder(request.group_instance_id, member_id)
            response = classic_members.join(
                group, request, member_id or context.new_member_id, (context.client_id, context.client_host), now_ms
            )
        except Refused as refused:
            self._take_back(group.group_id, None, now_ms)
            return [join_refused(refused.error, context.ticket, request.member_id)]

        def refusal(error: int) -> Any:
            return join_refused(error, None, request.member_id).response

        return self._append(group.group_id, context.ticket, response, refusal, now_ms)

    def sync(self, request: SyncGroupRequest, ticket: object, now_ms: int) -> list[Effect]:
        """SyncGroup, to a consumer group."""
        group = self._table.open_consumer(request.group_id)
        try:
            response = classic_members.sync(group, request, now_ms)
        except Refused as refused:
            return [sync_refused(refused.error, ticket)]
        return self._append(group.group_id, ticket, response, lambda error: sync_refused(error, None).response, now_ms)

    def classic_heartbeat(self, request: HeartbeatRequest, ticket: object, now_ms: int) -> list[Effect]:
        """Heartbeat, to a consumer group."""
        group = self._table.open_consumer(request.group_id)
        try:
            error = classic_members.heartbeat(
                group, request.member_id, request.group_instance_id, request.generation_id, now_ms
            )
        except Refused as refused:
            return [Answer(ticket, HeartbeatResponse(error_code=refused.error))]
        response = HeartbeatResponse(error_code=error)
        return self._append(group.group_id, ticket, response, lambda error: HeartbeatResponse(error_code=error), now_ms)

    def leave(self, group_id: str, identities: tuple[MemberIdentity, ...], ticket: object, now_ms: int) -> list[Effect]:
        """LeaveGroup, to a consumer group."""
        group = self._table.open_consumer(group_id)
        response = LeaveGroupResponse(members=classic_members.leave(group, identities))
        return self._append(group_id, ticket, response, lambda error: LeaveGroupResponse(error_code=error), now_ms)

    def delete(self, group_id: str, offsets: tuple[GroupRecord, ...], ticket: object) -> list[Effect]:
        """DeleteGroups, for a consumer group: it must be empty. `offsets`: the tombstones of its committed offsets."""

        def result(error: int) -> DeletableGroupResult:
            return DeletableGroupResult(group_id=group_id, error_code=error)

        group = self._table.open_consumer(group_id)
        if group.members:
            return [Answer(ticket, result(ErrorCode.NON_EMPTY_GROUP))]
        self._end(group)
        return [self._table.append(group_id, ticket, result(ErrorCode.NONE), result, first=offsets)]

    def make_way(self, group: ConsumerGroup, now_ms: int) -> list[Effect]:
        """A member of the classic protocol joins a group that is empty: it is a classic group then."""
        self._end(group)
        return self._append(group.group_id, None, None, None, now_ms)

    def _end(self, group: ConsumerGroup) -> None:
        for key, value in group.tombstones():
            self._table.decide(key, value)

    # -- time

    def tick(self, group: ConsumerGroup, now_ms: int) -> list[Effect]:
        """Remove members that sent no heartbeat in time, or keep others waiting."""
        overdue = group.overdue(now_ms)
        if overdue:
            group.remove(overdue)
        group.rescan()
        return self._append(group.group_id, None, None, None, now_ms) if overdue else []

    # -- the end of a decision

    def _append(
        self,
        group_id: str,
        ticket: object,
        response: Any,
        refusal: Refusal | None,
        now_ms: int,
        before: Group | None = None,
    ) -> list[Effect]:
        after = self._downgraded(group_id)
        effects: list[Effect] = [self._table.append(group_id, ticket, response, refusal, before=before)]
        if after is not None:
            effects += after.loaded(now_ms)
        return effects

    def _downgraded(self, group_id: str) -> Group | None:
        """The classic group, if the last member of the new protocol has just left."""
        group = self._table.consumer(group_id)
        left = any(value is None for _, value in self._table.records)
        if group is None or not left or not group.goes_back:
            return None
        value = migration.downgraded(group)
        self._end(group)
        self._table.decide(GroupMetadataKey(group=group_id), value)
        return self._table.classic(group_id)

    def _take_back(self, group_id: str, before: Group | None, now_ms: int) -> None:
        """The request is refused, and has changed nothing."""
        self._table.take_back(group_id, self._table.decided().undo, before, now_ms)


def changed(purpose: ConsumerGroupChanged, error: int) -> list[Effect]:
    """A decision is committed, or was refused: answer."""
    effects: list[Effect] = [] if error else [*purpose.then]
    if purpose.ticket is None or (purpose.response is None and effects):
        return effects
    if error and purpose.refusal is not None:
        return [Answer(purpose.ticket, purpose.refusal(group_error(error)))]
    return [Answer(purpose.ticket, purpose.response), *effects]


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
