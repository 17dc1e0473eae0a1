"""ListOffsets (key 2), versions 1-11: earliest, latest, by timestamp, of the largest timestamp.

Only leaders answer (KIP-207, KIP-734), but for a debugging client (replica id -2): it hears of the log that is here,
up to its end, from a replica of any role.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.network.call import Call, Handler
from tanist.broker.replication.replicas import Replicas
from tanist.events.storage import BatchDamaged
from tanist.log.scan import DamagedBatch
from tanist.replica.reads import AS_REPLICA, READ_UNCOMMITTED, TIMESTAMP_SINCE, list_offsets
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from tanist.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

_CONSUMER, _DEBUGGING = -1, -2
"""Replica ids that are no broker's."""


@dataclass(frozen=True, slots=True)
class ListOffsets:
    """The handler of ListOffsets."""

    context: NodeContext
    replicas: Replicas

    def handle(self, request: ListOffsetsRequest, call: Call) -> None:
        """Answer for each partition. A search by time reads index files and decodes one batch."""
        # What else a consumer sends is no level, and must not be taken for a replica's.
        level = max(request.isolation_level, READ_UNCOMMITTED)
        isolation_level = level if request.replica_id == _CONSUMER else AS_REPLICA
        leader_only = request.replica_id != _DEBUGGING
        call.reply(
            ListOffsetsResponse(
                topics=tuple(
                    ListOffsetsTopicResponse(
                        name=topic.name,
                        partitions=tuple(
                            self._offset(topic.name, wanted, isolation_level, call.version, leader_only)
                            if allowed
                            else ListOffsetsPartitionResponse(
                                partition_index=wanted.partition_index, error_code=rows.LIST_OFFSETS_TOPIC.code
                            )
                            for wanted in topic.partitions
                        ),
                    )
                    for topic in request.topics
                    for allowed in (call.may(rows.LIST_OFFSETS_TOPIC, topic.name),)
                )
            )
        )

    def _offset(
        self, topic: str, wanted: ListOffsetsPartition, isolation_level: int, version: int, leader_only: bool
    ) -> ListOffsetsPartitionResponse:
        index = wanted.partition_index
        if wanted.timestamp < 0 and TIMESTAMP_SINCE.get(wanted.timestamp, version + 1) > version:
            return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.UNSUPPORTED_VERSION)
        hosted = self.replicas.get(topic, index)
        if hosted is None:
            return ListOffsetsPartitionResponse(
                partition_index=index, error_code=self.replicas.absent_error(topic, index)
            )
        if hosted.stale:
            return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        try:
            listed = list_offsets(
                hosted.replica,
                hosted.log,
                timestamp=wanted.timestamp,
                isolation_level=isolation_level,
                last_stable_offset=hosted.log.last_stable_offset(hosted.replica.high_watermark),
                current_leader_epoch=wanted.current_leader_epoch,
                version=version,
                leader_only=leader_only,
            )
        except DamagedBatch as damage:
            self.context.events.emit(BatchDamaged(hosted.name, str(damage)))
            return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.CORRUPT_MESSAGE)
        except OSError as failure:
            hosted.disk_failed(failure)
            return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return ListOffsetsPartitionResponse(
            partition_index=index,
            error_code=listed.error,
            timestamp=listed.timestamp,
            offset=listed.offset,
            leader_epoch=listed.leader_epoch,
        )


def build(components: NodeComponents) -> Handler:
    return ListOffsets(components.context, components.replicas).handle
