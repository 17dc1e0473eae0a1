"""OffsetFetch (key 9), versions 1-10: what a group has committed. One group, and since version 8 several.

A group that nobody knows has committed nothing: that is offset -1, and no error. A client that asks for stable offsets
only gets UNSTABLE_OFFSET_COMMIT where a transaction is open, and asks again (KIP-447).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from uuid import UUID

from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.coordinator.table import Committed
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from tanist.wire.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tanist.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from tanist.broker.groups.group_coordinator import GroupPartition

CommittedOffsets: TypeAlias = Mapping[tuple[str, int], Committed]
Unstable: TypeAlias = Callable[[tuple[str, int]], bool]
"""Whether an open transaction has committed an offset of a topic and partition (KIP-447)."""
P = TypeVar("P", OffsetFetchResponsePartition, OffsetFetchResponsePartitions)

_TOP_LEVEL_ERROR_VERSION = 2
_SEVERAL_VERSION = 8
_IDS_VERSION = 10
_NOTHING = Committed(-1)


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """The handler of OffsetFetch."""

    metadata: MetadataView
    groups: Groups

    def handle(self, request: OffsetFetchRequest, call: Call) -> None:
        """Answer from what is committed, once it is sure that nobody else coordinates the groups by now."""
        several = call.version >= _SEVERAL_VERSION

        def answer(errors: dict[str, int]) -> None:
            if several:
                groups = tuple(self._group(each, request, call, errors) for each in request.groups)
                call.reply(OffsetFetchResponse(groups=groups))
            else:
                call.reply(self._one_group(request, call, errors))

        group_ids = [each.group_id for each in request.groups] if several else [request.group_id]
        denied = {
            group_id: int(rows.OFFSET_FETCH_GROUP.code)
            for group_id in group_ids
            if not call.may(rows.OFFSET_FETCH_GROUP, group_id)
        }
        sure = call.later(lambda errors: answer({**errors, **denied}))
        self.groups.coordinator().when_sure([each for each in group_ids if each not in denied], sure)

    def _find(self, group_id: str, errors: dict[str, int]) -> GroupPartition | int:
        return errors.get(group_id) or self.groups.coordinator().find(group_id)

    def _one_group(self, request: OffsetFetchRequest, call: Call, errors: dict[str, int]) -> OffsetFetchResponse:
        found = self._find(request.group_id, errors)
        error = found if isinstance(found, int) else 0
        committed = {} if isinstance(found, int) else found.shard.committed(request.group_id)
        unstable = _nothing_is_unstable
        if request.require_stable and not isinstance(found, int):
            unstable = partial(found.shard.pending.is_unstable, request.group_id)
        wanted: list[tuple[str, Iterable[int]]]
        if request.topics is None:
            wanted = [(name, indexes) for name, indexes in _all_of(committed) if call.may(rows.OFFSET_FETCH_ALL, name)]
        elif error and call.version >= _TOP_LEVEL_ERROR_VERSION:
            wanted = []
        else:
            wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
        topics = tuple(
            OffsetFetchResponseTopic(
                name=name,
                partitions=_partitions(
                    OffsetFetchResponsePartition,
                    committed if allowed else {},
                    name,
                    indexes,
                    error if allowed else int(rows.OFFSET_FETCH_TOPIC.code),
                    unstable,
                ),
            )
            for name, indexes in wanted
            for allowed in (request.topics is None or bool(error) or call.may(rows.OFFSET_FETCH_TOPIC, name),)
        )
        return OffsetFetchResponse(error_code=error, topics=topics)

    def _group(
        self, group: OffsetFetchRequestGroup, request: OffsetFetchRequest, call: Call, errors: dict[str, int]
    ) -> OffsetFetchResponseGroup:
        found = self._find(group.group_id, errors)
        if isinstance(found, int):
            return OffsetFetchResponseGroup(group_id=group.group_id, error_code=found)
        members = found.shard.by_epoch(group.group_id)
        refused = 0 if members is None else members.fetch_error(group.member_id, group.member_epoch)
        if refused:
            return OffsetFetchResponseGroup(group_id=group.group_id, error_code=refused)
        committed = found.shard.committed(group.group_id)
        unstable = _nothing_is_unstable
        if request.require_stable:
            unstable = partial(found.shard.pending.is_unstable, group.group_id)
        image = self.metadata.image
        by_id = call.version >= _IDS_VERSION
        answers: list[OffsetFetchResponseTopics] = []
        if group.topics is None:
            for name, indexes in _all_of(committed):
                topic_id = image.topic_ids.get(name, ZERO_UUID)
                # Without an id it could not be named.
                if (not by_id or topic_id != ZERO_UUID) and call.may(rows.OFFSET_FETCH_ALL, name):
                    answers.append(_topic(committed, name, topic_id, indexes, 0, unstable))
        for wanted in group.topics or ():
            name, topic_id, error = wanted.name, wanted.topic_id, 0
            if by_id:
                topic = image.topics.get(topic_id)
                name, error = ("", int(ErrorCode.UNKNOWN_TOPIC_ID)) if topic is None else (topic.name, 0)
            if not error and not call.may(rows.OFFSET_FETCH_TOPIC, name):
                error = int(rows.OFFSET_FETCH_TOPIC.code)
            visible = {} if error else committed
            answers.append(_topic(visible, name, topic_id, wanted.partition_indexes, error, unstable))
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=tuple(answers))


def build(components: NodeComponents) -> Handler:
    return OffsetFetch(components.metadata, components.groups).handle


def _all_of(committed: CommittedOffsets) -> list[tuple[str, Iterable[int]]]:
    return [(name, [index for _, index in places]) for name, places in groupby(sorted(committed), itemgetter(0))]


def _nothing_is_unstable(topic_partition: tuple[str, int]) -> bool:
    """For clients that take what is committed, whatever open transactions may commit."""
    return False


def _topic(
    committed: CommittedOffsets, name: str, topic_id: UUID, indexes: Iterable[int], error: int, unstable: Unstable
) -> OffsetFetchResponseTopics:
    parts = _partitions(OffsetFetchResponsePartitions, committed, name, indexes, error, unstable)
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=parts)


def _partitions(
    kind: type[P], committed: CommittedOffsets, name: str, indexes: Iterable[int], error: int, unstable: Unstable
) -> tuple[P, ...]:
    """Partitions of one topic; what nobody has committed is at -1, and so is what an open transaction may commit."""
    answers: list[P] = []
    for index in indexes:
        waits = not error and unstable((name, index))
        at = _NOTHING if waits else committed.get((name, index), _NOTHING)
        answers.append(
            kind(
                partition_index=index,
                committed_offset=at.offset,
                committed_leader_epoch=at.leader_epoch,
                metadata=at.metadata,
                error_code=int(ErrorCode.UNSTABLE_OFFSET_COMMIT) if waits else error,
            )
        )
    return tuple(answers)
