"""OffsetCommit (key 8), versions 2-10. Topics go by name, and since version 10 by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.network.client_connection import Call
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestTopic
from tanist.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tanist.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from tanist.broker.node import Node

_IDS_VERSION = 10


def handle(node: Node, request: OffsetCommitRequest, call: Call) -> None:
    """Commit what can be committed; the answer waits until it is."""
    coordinator = node.coordinator()
    found = coordinator.find(request.group_id)
    if isinstance(found, int):
        refused = tuple(_refused(topic, found) for topic in request.topics)
        call.reply(OffsetCommitResponse(topics=refused))
        return
    image = node.metadata.image
    known: list[OffsetCommitRequestTopic] = []
    unknown: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        if call.version >= _IDS_VERSION:
            named = image.topics.get(topic.topic_id)
            if named is None:
                unknown.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            topic.name = named.name
        else:
            topic.topic_id = image.topic_ids.get(topic.name, ZERO_UUID)
            if topic.topic_id == ZERO_UUID:
                unknown.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
        known.append(topic)
    request.topics = tuple(known)

    def reply(response: OffsetCommitResponse) -> None:
        response.topics = (*response.topics, *unknown)
        call.reply(response)

    call.wait()
    coordinator.carry_out(found, found.shard.commit(request, reply, node.clock.now_ms()))


def _refused(topic: OffsetCommitRequestTopic, error: int) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ),
    )
