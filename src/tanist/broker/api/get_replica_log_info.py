"""GetReplicaLogInfo (key 32093, ours), version 0 (KIP-966): where this broker's logs end, for the election of a leader.

The answer names the broker epoch, so that one given before a restart is recognised, and the leader epoch by which this
replica acts, so that the controller sees whether the replica has left its last leader: a follower that still believes
in one may append more.

Between nodes only: its key is private (`wire.apis.PRIVATE_FROM`), and listeners for clients do not know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.replication.replicas import Replicas
from tanist.log.epochs import LeaderEpochCache
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.get_replica_log_info_request import GetReplicaLogInfoRequest
from tanist.wire.messages.get_replica_log_info_response import (
    GetReplicaLogInfoResponse,
    LeaderEpochStart,
    PartitionLogInfo,
    TopicPartitionLogInfo,
)

_MAX_EPOCHS = 1_000
MAX_PARTITIONS = 1_000
"""KIP: "If more than 1000 partitions are included, only the first 1000 will be served. Others will be returned with
REQUEST_LIMIT_REACHED.\""""


@dataclass(frozen=True, slots=True)
class GetReplicaLogInfo:
    """The handler of GetReplicaLogInfo."""

    metadata: MetadataView
    replicas: Replicas
    lifecycle: Lifecycle

    def handle(self, request: GetReplicaLogInfoRequest, call: Call) -> None:
        """No partitions (null) means every replica of this broker, up to the limit."""
        asked: list[tuple[UUID, tuple[int, ...]]]
        if request.topic_partitions is None:
            asked = self._everything()
        else:
            asked = [(topic.topic_id, topic.partitions) for topic in request.topic_partitions]
        served = 0
        topics = []
        for topic_id, partitions in asked:
            infos = []
            for partition in partitions:
                served += 1
                infos.append(self._info(topic_id, partition) if served <= MAX_PARTITIONS else _too_many(partition))
            topics.append(TopicPartitionLogInfo(topic_id=topic_id, partition_log_info=tuple(infos)))
        call.reply(
            GetReplicaLogInfoResponse(
                broker_epoch=self.lifecycle.broker_epoch, topic_partition_log_info_list=tuple(topics)
            )
        )

    def _everything(
        self,
    ) -> list[tuple[UUID, tuple[int, ...]]]:
        by_topic: dict[UUID, list[int]] = {}
        for hosted in self.replicas:
            by_topic.setdefault(hosted.topic_id, []).append(hosted.index)
        return [(topic_id, tuple(sorted(partitions))) for topic_id, partitions in by_topic.items()]

    def _info(self, topic_id: UUID, partition: int) -> PartitionLogInfo:
        hosted = self.replicas.get(topic_id, partition)
        if hosted is None:
            known = topic_id in self.metadata.image.topics
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.UNKNOWN_TOPIC_ID
            return _failed(partition, error, "This broker has no replica of the partition.")
        if hosted.stale or hosted.log.failed is not None:
            return _failed(partition, ErrorCode.KAFKA_STORAGE_ERROR, "The log directory of the replica is offline.")
        return PartitionLogInfo(
            partition=partition,
            last_written_leader_epoch=hosted.log.last_written_epoch,
            current_leader_epoch=hosted.leader_epoch,
            log_end_offset=hosted.log.log_end_offset,
            leader_epochs=_leader_epochs(hosted.log.epochs),
        )


def build(components: NodeComponents) -> Handler:
    return GetReplicaLogInfo(components.metadata, components.replicas, components.lifecycle).handle


def _leader_epochs(epochs: LeaderEpochCache) -> tuple[LeaderEpochStart, ...]:
    """All of them, or none where they would swell the response: then the log counts as one that may have diverged."""
    entries = epochs.entries
    if len(entries) > _MAX_EPOCHS:
        return ()
    return tuple(LeaderEpochStart(leader_epoch=epoch, start_offset=start) for epoch, start in entries)


def _too_many(partition: int) -> PartitionLogInfo:
    return _failed(
        partition, ErrorCode.REQUEST_LIMIT_REACHED, f"Only {MAX_PARTITIONS} partitions are served a request."
    )


def _failed(partition: int, error: ErrorCode, message: str) -> PartitionLogInfo:
    return PartitionLogInfo(
        partition=partition,
        last_written_leader_epoch=-1,
        current_leader_epoch=-1,
        log_end_offset=-1,
        error_code=error,
        error_message=message,
    )
