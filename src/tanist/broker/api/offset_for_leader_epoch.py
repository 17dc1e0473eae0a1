"""OffsetForLeaderEpoch (key 23), versions 2-4: where an epoch ends in the leader's log (KIP-101, KIP-320; rule 112)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.network.client_connection import Call
from tanist.replica.metadata import NO_EPOCH
from tanist.replica.reads import offsets_for_leader_epoch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from tanist.wire.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from tanist.broker.node import Node


def handle(node: Node, request: OffsetForLeaderEpochRequest, call: Call) -> None:
    """Answer for each partition."""
    call.reply(
        OffsetForLeaderEpochResponse(
            topics=tuple(
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=tuple(_end_offset(node, topic.topic, wanted) for wanted in topic.partitions),
                )
                for topic in request.topics
            )
        )
    )


def _end_offset(node: Node, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    hosted = node.replicas.get(topic, wanted.partition)
    if hosted is None:
        topic_id = node.metadata.image.topic_ids.get(topic)
        state = None if topic_id is None else node.metadata.image.partition(topic_id, wanted.partition)
        error = node.fetch_absent_error(topic, wanted.partition)
        if state is not None and NO_EPOCH < wanted.current_leader_epoch < state.leader_epoch:
            # Also where no replica is (any more): a leader that asks whether it leads still has to be told
            # (`leadership.py`).
            error = ErrorCode.FENCED_LEADER_EPOCH
        return EpochEndOffset(error_code=error, partition=wanted.partition)
    if hosted.stale:
        return EpochEndOffset(error_code=ErrorCode.KAFKA_STORAGE_ERROR, partition=wanted.partition)
    answer = offsets_for_leader_epoch(hosted.replica, wanted.current_leader_epoch, wanted.leader_epoch)
    return EpochEndOffset(
        error_code=answer.error,
        partition=wanted.partition,
        leader_epoch=answer.leader_epoch,
        end_offset=answer.end_offset,
    )
