"""DescribeShareGroupOffsets (key 90), versions 0-1; AlterShareGroupOffsets (key 91), version 0; DeleteShareGroupOffsets
(key 92), version 0: the offsets of share groups, for operators.

Where a group is in a partition is the start offset of its share partition. Its lag is what the partition has from there
on, without what it is done with (KIP-1226), and negative beyond the end. A partition that is not there has -1 for both,
and no error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.share.end_offsets import Place
from tanist.broker.share.service import Shares
from tanist.broker.share.state_requests import Summarize
from tanist.broker.turn import Turn
from tanist.controller.features import SHARE_VERSION
from tanist.coordinator.effects import Effect
from tanist.coordinator.share.state_shard import Outcome, SharePartitionId
from tanist.coordinator.share_groups import ShareGroups
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
)
from tanist.wire.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from tanist.wire.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from tanist.wire.messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from tanist.wire.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from tanist.wire.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

_UNKNOWN = -1
_DENIED = "Topic authorization failed."


@dataclass(frozen=True, slots=True)
class ShareGroupOffsets:
    """The handlers of all three."""

    metadata: MetadataView
    groups: Groups
    shares: Shares
    turn: Turn

    @property
    def _unsupported(self) -> bool:
        return self.metadata.image.features.get(SHARE_VERSION, 0) < 1

    # -- describe

    def describe(self, request: DescribeShareGroupOffsetsRequest, call: Call) -> None:
        """The answer waits for the coordinators of all share partitions."""
        answers: dict[str, DescribeShareGroupOffsetsResponseGroup] = {}
        groups = {group.group_id: group for group in request.groups}

        def described(answer: DescribeShareGroupOffsetsResponseGroup) -> None:
            answers[answer.group_id] = answer
            if len(answers) == len(groups):
                call.reply(DescribeShareGroupOffsetsResponse(groups=tuple(answers[each] for each in groups)))

        if not groups:
            call.reply(DescribeShareGroupOffsetsResponse())
        then = call.later(described)
        for group in groups.values():
            self._describe(group, call, then)

    def _describe(self, group: DescribeShareGroupOffsetsRequestGroup, call: Call, then: Any) -> None:
        error: int = ErrorCode.NONE
        if self._unsupported:
            error = ErrorCode.UNSUPPORTED_VERSION
        elif not call.may(rows.DESCRIBE_SHARE_GROUP_OFFSETS_GROUP, group.group_id):
            error = rows.DESCRIBE_SHARE_GROUP_OFFSETS_GROUP.code
        found = ErrorCode.NONE if error else self.groups.coordinator().find(group.group_id)
        if isinstance(found, int):
            then(DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, error_code=error or found))
            return
        topics: list[DescribeShareGroupOffsetsResponseTopic] = []
        wanted: list[tuple[str, UUID, tuple[int, ...]]] = []
        if group.topics is None:
            share = found.shard.share(group.group_id)
            for topic_id, named in share.stateful.initialized.items() if share is not None else ():
                name = self.metadata.topic_name(topic_id)
                if name is not None and call.may(rows.DESCRIBE_SHARE_GROUP_OFFSETS_ALL, name):
                    wanted.append((name, topic_id, tuple(sorted(named.partitions))))
        for topic in group.topics or ():
            known = self.metadata.image.topic_ids.get(topic.topic_name)
            if not call.may(rows.DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC, topic.topic_name):
                denied = rows.DESCRIBE_SHARE_GROUP_OFFSETS_TOPIC.code
                topics.append(_refused(topic.topic_name, topic.partitions, denied))
            elif known is None:
                topics.append(_refused(topic.topic_name, topic.partitions, ErrorCode.NONE))
            else:
                wanted.append((topic.topic_name, known, topic.partitions))
        _Summaries(group.group_id, wanted, topics, then).ask(self.shares)

    # -- alter and delete

    def alter(self, request: AlterShareGroupOffsetsRequest, call: Call) -> None:
        """The answer waits until the share partitions have their new start offsets."""

        def refused(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
            return AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                partitions=tuple(
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=each.partition_index, error_code=row.code, error_message=_DENIED
                    )
                    for each in topic.partitions
                ),
            )

        row = rows.ALTER_SHARE_GROUP_OFFSETS_TOPIC
        self._change(
            request,
            call,
            AlterShareGroupOffsetsResponse,
            (row, refused),
            lambda shares, then: shares.alter_offsets(request, then, self.turn.time_ms()),
        )

    def delete(self, request: DeleteShareGroupOffsetsRequest, call: Call) -> None:
        """The answer waits until the states are gone."""

        def refused(topic: DeleteShareGroupOffsetsRequestTopic) -> DeleteShareGroupOffsetsResponseTopic:
            return DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, error_code=row.code, error_message=_DENIED
            )

        row = rows.DELETE_SHARE_GROUP_OFFSETS_TOPIC
        self._change(
            request,
            call,
            DeleteShareGroupOffsetsResponse,
            (row, refused),
            lambda shares, then: shares.delete_offsets(request, then),
        )

    def _change(
        self,
        request: Any,
        call: Call,
        kind: Callable[..., Any],
        denial: tuple[rows.Row, Callable[[Any], Any]],
        decide: Callable[[ShareGroups, Callable[[Any], None]], list[Effect]],
    ) -> None:
        """`denial`: what the client must be allowed, and the part of the answer about a topic where it is not."""
        if self._unsupported:
            call.reply(kind(error_code=ErrorCode.UNSUPPORTED_VERSION))
            return
        row, refused = denial
        denied = {topic.topic_name: topic for topic in request.topics if not call.may(row, topic.topic_name)}
        request.topics = tuple(topic for topic in request.topics if topic.topic_name not in denied)
        refusals = tuple(refused(topic) for topic in denied.values())

        def decided(response: Any) -> None:
            if not response.error_code:
                response.responses = (*refusals, *response.responses)
            call.reply(response)

        then = call.later(decided)
        coordinator = self.groups.coordinator()
        found = coordinator.find(request.group_id) if request.group_id else int(ErrorCode.INVALID_GROUP_ID)
        if isinstance(found, int):
            then(kind(error_code=found))
            return
        coordinator.carry_out(found, partial(decide, found.shard.shares, then), call.refuse)


class _Summaries:
    """The start offsets and lags of one group's share partitions, until all are known."""

    def __init__(
        self,
        group_id: str,
        wanted: list[tuple[str, UUID, tuple[int, ...]]],
        topics: list[DescribeShareGroupOffsetsResponseTopic],
        then: Any,
    ) -> None:
        self._group_id = group_id
        self._wanted = wanted
        self._topics = topics
        self._then = then
        self._outcomes: dict[SharePartitionId, Outcome] = {}
        self._left = {SharePartitionId(group_id, each[1], index) for each in wanted for index in each[2]}

    def ask(self, shares: Shares) -> None:
        for where in sorted(self._left):
            shares.persister().ask(where, Summarize(), partial(self._answered, shares, where))
        if not self._left:
            self._reply({})

    def _answered(self, shares: Shares, where: SharePartitionId, outcome: Outcome) -> None:
        self._outcomes[where] = outcome
        self._left.discard(where)
        if not self._left:
            begun = [each for each, known in self._outcomes.items() if known.state and known.state.start_offset >= 0]
            shares.end_offsets().ask([(each.topic_id, each.partition) for each in begun], self._reply)

    def _reply(self, ends: Mapping[Place, int]) -> None:
        for name, topic_id, indexes in self._wanted:
            parts = tuple(
                _summary(
                    index,
                    self._outcomes[SharePartitionId(self._group_id, topic_id, index)],
                    ends.get((topic_id, index)),
                )
                for index in indexes
            )
            self._topics.append(
                DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, partitions=parts)
            )
        self._then(DescribeShareGroupOffsetsResponseGroup(group_id=self._group_id, topics=tuple(self._topics)))


def _summary(index: int, outcome: Outcome, end: int | None) -> DescribeShareGroupOffsetsResponsePartition:
    state = outcome.state
    if state is None:
        error = ErrorCode.NONE if outcome.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else outcome.error
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=_UNKNOWN, leader_epoch=0, error_code=error
        )
    done = state.delivery_complete_count
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=state.start_offset,
        leader_epoch=state.leader_epoch,
        lag=_UNKNOWN if end is None or done < 0 else end - state.start_offset - done,
    )


def _refused(name: str, indexes: tuple[int, ...], error: int) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        partitions=tuple(
            DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=_UNKNOWN, error_code=error)
            for index in indexes
        ),
    )


def _handlers(components: NodeComponents) -> ShareGroupOffsets:
    return ShareGroupOffsets(components.metadata, components.groups, components.shares, components.turn)


def build_describe(components: NodeComponents) -> Handler:
    return _handlers(components).describe


def build_alter(components: NodeComponents) -> Handler:
    return _handlers(components).alter


def build_delete(components: NodeComponents) -> Handler:
    return _handlers(components).delete
