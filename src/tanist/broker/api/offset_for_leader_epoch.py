"""OffsetForLeaderEpoch (key 23), versions 2-4: where an epoch ends in the leader's log (KIP-101, KIP-320; rule 112)."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.replication.replicas import Replicas
from tanist.replica.metadata import NO_EPOCH
from tanist.replica.reads import offsets_for_leader_epoch
from tanist.security import requirements as rows
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


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpoch:
    """The handler of OffsetForLeaderEpoch."""

    metadata: MetadataView
    replicas: Replicas

    def handle(self, request: OffsetForLeaderEpochRequest, call: Call) -> None:
        """Answer for each partition."""
        call.reply(
            OffsetForLeaderEpochResponse(
                topics=tuple(
                    OffsetForLeaderTopicResult(
                        topic=topic.topic,
                        partitions=tuple(
                            self._end_offset(topic.topic, wanted)
                            if allowed
                            else EpochEndOffset(
                                partition=wanted.partition, error_code=rows.OFFSET_FOR_LEADER_EPOCH_TOPIC.code
                            )
                            for wanted in topic.partitions
                        ),
                    )
                    for topic in request.topics
                    for allowed in (call.may(rows.OFFSET_FOR_LEADER_EPOCH_TOPIC, topic.topic),)
                )
            )
        )

    def _end_offset(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        hosted = self.replicas.get(topic, wanted.partition)
        if hosted is None:
            topic_id = self.metadata.image.topic_ids.get(topic)
            state = None if topic_id is None else self.metadata.image.partition(topic_id, wanted.partition)
            error = self.replicas.absent_error(topic, wanted.partition)
            if state is not None and NO_EPOCH < wanted.current_leader_epoch < state.leader_epoch:
                # Also where no replica is (any more): a leader that asks whether it still leads has to hear of it
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


def build(components: NodeComponents) -> Handler:
    return OffsetForLeaderEpoch(components.metadata, components.replicas).handle
