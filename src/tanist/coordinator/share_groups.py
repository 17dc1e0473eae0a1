"""The requests to the share groups of one partition (KIP-932).

Turns requests into decisions of the table, and decisions into appends and into requests for the state of share
partitions, which another coordinator has. What was asked for there comes back here, and is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from tanist.coordinator.consumer.topics import Topics
from tanist.coordinator.effects import (
    Answer,
    DeleteShareState,
    Effect,
    FindShareState,
    InitializeShareState,
    Refused,
)
from tanist.coordinator.rebalance import GroupSettings
from tanist.coordinator.share.group import JOINING_EPOCH, LEAVING_EPOCH, ShareGroup
from tanist.coordinator.share.records import UNINITIALIZED
from tanist.coordinator.table import GroupTable
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from tanist.wire.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from tanist.wire.messages.delete_groups_response import DeletableGroupResult
from tanist.wire.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from tanist.wire.messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse

_UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class ShareGroups:
    """The requests to the share groups of one partition."""

    def __init__(self, settings: GroupSettings, table: GroupTable, topics: Topics) -> None:
        self._settings = settings
        self._table = table
        self._topics = topics

    def heartbeat(
        self, beat: ShareGroupHeartbeatRequest, client: tuple[str, str], ticket: object, now_ms: int
    ) -> list[Effect]:
        """ShareGroupHeartbeat: join, stay, or leave."""

        def refusal(error: int, message: str | None = None) -> ShareGroupHeartbeatResponse:
            return ShareGroupHeartbeatResponse(error_code=error, error_message=message)

        effects: list[Effect] = []
        try:
            _check_form(beat)
            group = self._entered(beat.group_id, joining=beat.member_epoch == JOINING_EPOCH)
            if beat.member_epoch == LEAVING_EPOCH:
                if beat.member_id not in group.members:
                    raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {beat.member_id} is not in the group.")
                group.remove([beat.member_id])
                response = ShareGroupHeartbeatResponse(member_id=beat.member_id, member_epoch=beat.member_epoch)
            else:
                response = group.heartbeat(beat, *client, now_ms)
                wanted = group.ask_for_state(now_ms, self._settings.share_initialize_retry_ms)
                if wanted:
                    starts = {each: dict.fromkeys(indexes, UNINITIALIZED) for each, indexes in wanted.items()}
                    effects.append(InitializeShareState(beat.group_id, group.epoch, starts))
                there = group.look_for_state(now_ms, self._settings.share_initialize_retry_ms)
                if there:
                    effects.append(FindShareState(beat.group_id, there))
        except Refused as refused:
            self._table.take_back(beat.group_id, self._table.decided().undo, None, now_ms)
            return [Answer(ticket, refusal(refused.error, str(refused)))]
        return self._append(group.group_id, ticket, response, refusal, effects)

    def _entered(self, group_id: str, *, joining: bool) -> ShareGroup:
        found = self._table.groups.get(group_id)
        if isinstance(found, ShareGroup):
            return found
        if found is not None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        if not joining:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return self._table.open_share(group_id)

    def tick(self, group: ShareGroup, now_ms: int) -> list[Effect]:
        """Remove members that sent no heartbeat in time."""
        overdue = group.overdue(now_ms)
        if overdue:
            group.remove(overdue)
        group.rescan()
        return self._append(group.group_id, None, None, None) if overdue else []

    # -- the state of share partitions

    def state_initialized(self, asked: InitializeShareState, error: int) -> list[Effect]:
        """The state that was asked for is there; or not, by `error`, and is asked for again.

        One of a later epoch is of the group too, whose log an unclean election has taken: the group goes on with it.
        """
        group = self._table.share(asked.group_id)
        if group is not None:
            group.initialized(asked.partitions, failed=error not in (ErrorCode.NONE, ErrorCode.FENCED_STATE_EPOCH))
        response = asked.response
        if error and response is not None:
            response = _alter_failed(response, error)
        return self._append(asked.group_id, asked.ticket, response, _alter_refused)

    def state_missed(self, group_id: str, missing: Mapping[UUID, Iterable[int]]) -> list[Effect]:
        """The state of these is gone: it is asked for again with the next heartbeat."""
        group = self._table.share(group_id)
        if group is None or not missing:
            return []
        group.missed(missing)
        return self._append(group_id, None, None, None)

    def state_deleted(self, asked: DeleteShareState, error: int) -> list[Effect]:
        """The state of topics is gone, or (by `error`) some may be left, which is deleted when one asks again."""
        group = self._table.share(asked.group_id)
        if asked.whole_group:
            return self._group_deleted(asked.group_id, group, error, asked.ticket)
        if group is not None and not error:
            group.deleted(asked.partitions)
        done = tuple(
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=self._topics.name_of(topic_id) or "",
                topic_id=topic_id,
                error_code=error,
                error_message=None if not error else "The state could not be deleted.",
            )
            for topic_id in asked.partitions
        )
        response = DeleteShareGroupOffsetsResponse(responses=(*asked.refused, *done))
        return self._append(
            asked.group_id, asked.ticket, response, lambda error: DeleteShareGroupOffsetsResponse(error_code=error)
        )

    def _group_deleted(self, group_id: str, group: ShareGroup | None, error: int, ticket: object) -> list[Effect]:
        def result(error: int) -> DeletableGroupResult:
            return DeletableGroupResult(group_id=group_id, error_code=error)

        if group is not None and group.members:
            error = ErrorCode.NON_EMPTY_GROUP  # it has come to life again
        if error or group is None:
            return [Answer(ticket, result(error or ErrorCode.GROUP_ID_NOT_FOUND))]
        for key, value in group.tombstones():
            self._table.decide(key, value)
        return self._append(group_id, ticket, result(ErrorCode.NONE), result)

    def topics_deleted(self, topic_ids: Iterable[UUID]) -> list[Effect]:
        """Topics are gone; so is the state of their share partitions."""
        gone = frozenset(topic_ids)
        return self._forget(lambda group: gone & group.stateful.topic_ids())

    def forget_missing(self) -> list[Effect]:
        """The log is loaded: topics that were deleted meanwhile are forgotten."""
        return self._forget(
            lambda group: {each for each in group.stateful.topic_ids() if not self._topics.name_of(each)}
        )

    def _forget(self, gone_of: Callable[[ShareGroup], Iterable[UUID]]) -> list[Effect]:
        effects: list[Effect] = []
        for group in [each for each in self._table.groups.values() if isinstance(each, ShareGroup)]:
            gone = gone_of(group)
            if gone:
                group.deleted(gone)
                effects += self._append(group.group_id, None, None, None)
        return effects

    # -- operators

    def delete(self, group_id: str, ticket: object) -> list[Effect]:
        """DeleteGroups, for a share group: it must be empty, and the state of its share partitions goes first."""

        def result(error: int) -> DeletableGroupResult:
            return DeletableGroupResult(group_id=group_id, error_code=error)

        group = self._table.open_share(group_id)
        if group.members:
            return [Answer(ticket, result(ErrorCode.NON_EMPTY_GROUP))]
        partitions = group.deleting(group.stateful.topic_ids())
        if not partitions:
            self._table.take_back(group_id, self._table.decided().undo, None, 0)
            return self._group_deleted(group_id, group, ErrorCode.NONE, ticket)
        return self._ask_to_delete(DeleteShareState(group_id, partitions, ticket, whole_group=True), result)

    def alter_offsets(self, request: AlterShareGroupOffsetsRequest, ticket: object, now_ms: int) -> list[Effect]:
        """AlterShareGroupOffsets: an empty group, or a new one, goes on from these offsets."""
        try:
            group = self._entered(request.group_id, joining=True)
            if group.members:
                raise Refused(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
        except Refused as refused:
            return [
                Answer(ticket, AlterShareGroupOffsetsResponse(error_code=refused.error, error_message=str(refused)))
            ]
        starts: dict[UUID, dict[int, int]] = {}
        topics: list[AlterShareGroupOffsetsResponseTopic] = []
        for topic in request.topics:
            found = self._topics.find(topic.topic_name)
            results = []
            for each in topic.partitions:
                there = found is not None and 0 <= each.partition_index < found[1]
                if found is not None and there:
                    starts.setdefault(found[0], {})[each.partition_index] = each.start_offset
                results.append(
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=each.partition_index,
                        error_code=ErrorCode.NONE if there else _UNKNOWN,
                        error_message=None if there else "This server does not host this topic-partition.",
                    )
                )
            named = AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, partitions=tuple(results))
            if found is not None:
                named.topic_id = found[0]
            topics.append(named)
        response = AlterShareGroupOffsetsResponse(responses=tuple(topics))
        if not starts:
            self._table.see_to(request.group_id)
            return [Answer(ticket, response)]
        group.initializing(starts, now_ms)
        asked = InitializeShareState(request.group_id, group.epoch, starts, ticket, response)
        return self._append(request.group_id, ticket, None, _alter_refused, [asked])

    def delete_offsets(self, request: DeleteShareGroupOffsetsRequest, ticket: object) -> list[Effect]:
        """DeleteShareGroupOffsets: an empty group forgets topics."""
        group = self._table.share(request.group_id)
        if group is None or group.members:
            error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else ErrorCode.NON_EMPTY_GROUP
            return [Answer(ticket, DeleteShareGroupOffsetsResponse(error_code=error))]
        if group.partitions is None:
            return [Answer(ticket, DeleteShareGroupOffsetsResponse())]  # as in Apache Kafka: nothing of any topic
        known, wanted = group.stateful, []
        refused: list[DeleteShareGroupOffsetsResponseTopic] = []
        for topic in request.topics:
            found = self._topics.find(topic.topic_name)
            if found is not None and (found[0] in known.initialized or found[0] in known.deleting):
                wanted.append(found[0])
                continue
            why = "There is no offset information to delete." if found is not None else None
            refused.append(
                DeleteShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name,
                    error_code=_UNKNOWN,
                    error_message=why or "This server does not host this topic-partition.",
                )
            )
        if not wanted:
            return [Answer(ticket, DeleteShareGroupOffsetsResponse(responses=tuple(refused)))]
        asked = DeleteShareState(request.group_id, group.deleting(wanted), ticket, tuple(refused))
        return self._ask_to_delete(asked, lambda error: DeleteShareGroupOffsetsResponse(error_code=error))

    def _ask_to_delete(self, asked: DeleteShareState, refusal: Callable[[int], Any]) -> list[Effect]:
        return self._append(asked.group_id, asked.ticket, None, refusal, [asked])

    # -- the end of a decision

    def _append(
        self,
        group_id: str,
        ticket: object,
        response: Any,
        refusal: Callable[[int], Any] | None,
        then: Iterable[Effect] = (),
    ) -> list[Effect]:
        """Have the records of the decision written; `then`: what is to be done when they are committed."""
        return [self._table.append(group_id, ticket, response, refusal, then=then)]


def _alter_refused(error: int) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error)


def _alter_failed(response: AlterShareGroupOffsetsResponse, error: int) -> AlterShareGroupOffsetsResponse:
    for topic in response.responses:
        for partition in topic.partitions:
            partition.error_code = partition.error_code or error
    return response


def _check_form(beat: ShareGroupHeartbeatRequest) -> None:
    """The checks of a request that do not depend on the group (Apache Kafka's)."""
    fault = None
    if not beat.member_id.strip():
        fault = "MemberId can't be empty."
    elif not beat.group_id.strip():
        fault = "GroupId can't be empty."
    elif beat.rack_id is not None and not beat.rack_id.strip():
        fault = "RackId can't be empty."
    elif beat.member_epoch == JOINING_EPOCH and not beat.subscribed_topic_names:
        fault = "SubscribedTopicNames must be set in first request."
    elif beat.member_epoch < LEAVING_EPOCH:
        fault = "MemberEpoch is invalid."
    if fault is not None:
        raise Refused(ErrorCode.INVALID_REQUEST, fault)
