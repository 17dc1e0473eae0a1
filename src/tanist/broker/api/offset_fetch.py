"""OffsetFetch (key 9), versions 1-10: what a group has committed. One group, and since version 8 several.

A group that nobody knows has committed nothing: that is offset -1, and no error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from tanist.broker.connection import Call
from tanist.coordinator.offsets import Committed
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
    from tanist.broker.node import Node

_TOP_LEVEL_ERROR_VERSION = 2
_SEVERAL_VERSION = 8
_IDS_VERSION = 10
_NOTHING = Committed(-1)


def handle(node: Node, request: OffsetFetchRequest, call: Call) -> None:
    """Answer at once, from what is committed."""
    if call.version >= _SEVERAL_VERSION:
        groups = tuple(_group(node, each, call.version) for each in request.groups)
        call.reply(OffsetFetchResponse(groups=groups))
        return
    found = node.coordinator().find(request.group_id)
    error = found if isinstance(found, int) else 0
    committed = {} if isinstance(found, int) else found.shard.committed(request.group_id)
    wanted: list[tuple[str, list[int]]]
    if request.topics is None:
        wanted = _all_of(committed)
    elif error and call.version >= _TOP_LEVEL_ERROR_VERSION:
        wanted = []
    else:
        wanted = [(topic.name, list(topic.partition_indexes)) for topic in request.topics]
    topics: list[OffsetFetchResponseTopic] = []
    for name, indexes in wanted:
        parts: list[OffsetFetchResponsePartition] = []
        for index in indexes:
            at = committed.get((name, index), _NOTHING)
            parts.append(
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=at.offset,
                    committed_leader_epoch=at.leader_epoch,
                    metadata=at.metadata,
                    error_code=error,
                )
            )
        topics.append(OffsetFetchResponseTopic(name=name, partitions=tuple(parts)))
    call.reply(OffsetFetchResponse(error_code=error, topics=tuple(topics)))


def _all_of(committed: dict[tuple[str, int], Committed]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for name, index in sorted(committed):
        topics.setdefault(name, []).append(index)
    return list(topics.items())


def _group(node: Node, group: OffsetFetchRequestGroup, version: int) -> OffsetFetchResponseGroup:
    found = node.coordinator().find(group.group_id)
    if isinstance(found, int):
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=found)
    consumers = found.shard.consumers.groups.get(group.group_id)
    refused = 0 if consumers is None else consumers.fetch_error(group.member_id, group.member_epoch)
    if refused:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=refused)
    committed = found.shard.committed(group.group_id)
    image = node.metadata.image
    by_id = version >= _IDS_VERSION
    answers: list[OffsetFetchResponseTopics] = []
    if group.topics is None:
        for name, indexes in _all_of(committed):
            topic_id = image.topic_ids.get(name, ZERO_UUID)
            if not by_id or topic_id != ZERO_UUID:  # without an id it could not be named
                answers.append(_topic(committed, name, topic_id, indexes, 0))
    for wanted in group.topics or ():
        name, topic_id, error = wanted.name, wanted.topic_id, 0
        if by_id:
            topic = image.topics.get(topic_id)
            name, error = ("", int(ErrorCode.UNKNOWN_TOPIC_ID)) if topic is None else (topic.name, 0)
        answers.append(_topic(committed, name, topic_id, list(wanted.partition_indexes), error))
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=tuple(answers))


def _topic(
    committed: dict[tuple[str, int], Committed], name: str, topic_id: UUID, indexes: list[int], error: int
) -> OffsetFetchResponseTopics:
    parts: list[OffsetFetchResponsePartitions] = []
    for index in indexes:
        at = committed.get((name, index), _NOTHING)
        parts.append(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=at.offset,
                committed_leader_epoch=at.leader_epoch,
                metadata=at.metadata,
                error_code=error,
            )
        )
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=tuple(parts))
