"""The requests to the Streams groups of one partition (KIP-1071).

Turns requests into decisions of the table, and decisions into appends. The internal topics of an application are not
made here: the answer to a heartbeat names those that are missing.
"""

from __future__ import annotations

from tanist.coordinator.consumer.member import JOINING_EPOCH, LEAVING_EPOCH, LEAVING_STATIC_EPOCH
from tanist.coordinator.effects import Answer, Effect, GroupRecord, Refused
from tanist.coordinator.group import Group
from tanist.coordinator.membership import GroupState
from tanist.coordinator.streams.group import Beaten, StreamsGroup
from tanist.coordinator.streams.member import check_form
from tanist.coordinator.table import GroupTable
from tanist.wire.errors import ErrorCode
from tanist.wire.group_records import GroupMetadataKey
from tanist.wire.messages.delete_groups_response import DeletableGroupResult
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from tanist.wire.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse


class StreamsGroups:
    """The requests to the Streams groups of one partition."""

    def __init__(self, table: GroupTable) -> None:
        self._table = table

    def heartbeat(
        self, beat: StreamsGroupHeartbeatRequest, client: tuple[str, str], ticket: object, now_ms: int
    ) -> list[Effect]:
        """StreamsGroupHeartbeat: join, stay, or leave. The ticket gets a `Beaten`."""

        def refusal(error: int, message: str | None = None) -> Beaten:
            return Beaten(StreamsGroupHeartbeatResponse(error_code=error, error_message=message))

        before: Group | None = None
        try:
            check_form(beat)
            before = self._table.classic(beat.group_id)
            group = self._entered(beat, before)
            leaving = beat.member_epoch in (LEAVING_EPOCH, LEAVING_STATIC_EPOCH)
            beaten = group.leave(beat) if leaving else group.heartbeat(beat, *client, now_ms)
        except Refused as refused:
            self._table.take_back(beat.group_id, self._table.decided().undo, before, now_ms)
            return [Answer(ticket, refusal(refused.error, str(refused)))]
        return [self._table.append(beat.group_id, ticket, beaten, refusal, before=before)]

    def _entered(self, beat: StreamsGroupHeartbeatRequest, classic: Group | None) -> StreamsGroup:
        """The group: as it is, or new; also in the place of an empty one of the classic protocol."""
        found = self._table.groups.get(beat.group_id)
        if isinstance(found, StreamsGroup):
            return found
        if found is not None and (classic is None or classic.state is not GroupState.EMPTY):
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {beat.group_id} is not a streams group.")
        if beat.member_epoch != JOINING_EPOCH:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {beat.group_id} not found.")
        if classic is not None and classic.stored is not None:
            self._table.decide(GroupMetadataKey(group=beat.group_id), None)
        return self._table.open_streams(beat.group_id)

    def tick(self, group: StreamsGroup, now_ms: int) -> list[Effect]:
        """Remove members that sent no heartbeat in time, or keep others waiting; make a delayed assignment."""
        overdue = group.overdue(now_ms)
        if overdue:
            group.remove(overdue)
        assigned = group.delay_ended(now_ms)
        group.rescan()
        return [self._table.append(group.group_id, None, None, None)] if overdue or assigned else []

    def delete(self, group_id: str, offsets: tuple[GroupRecord, ...], ticket: object) -> list[Effect]:
        """DeleteGroups, for a Streams group: it must be empty. `offsets`: the tombstones of its committed offsets."""

        def result(error: int) -> DeletableGroupResult:
            return DeletableGroupResult(group_id=group_id, error_code=error)

        group = self._table.open_streams(group_id)
        if group.members:
            return [Answer(ticket, result(ErrorCode.NON_EMPTY_GROUP))]
        for key, value in group.tombstones():
            self._table.decide(key, value)
        return [self._table.append(group_id, ticket, result(ErrorCode.NONE), result, first=offsets)]
