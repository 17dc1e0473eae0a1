"""DescribeProducers (key 61), version 0: the idempotent producers a leader remembers (KIP-664)."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.broker.replication.replicas import Replicas
from tanist.controller.topic_names import name_error
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_producers_request import DescribeProducersRequest
from tanist.wire.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


@dataclass(frozen=True, slots=True)
class DescribeProducers:
    """The handler of DescribeProducers."""

    replicas: Replicas

    def handle(self, request: DescribeProducersRequest, call: Call) -> None:
        """Answer for each partition."""
        topics: list[TopicResponse] = []
        for topic in request.topics:
            parts: list[PartitionResponse] = []
            allowed = call.may(rows.DESCRIBE_PRODUCERS_TOPIC, topic.name)
            for index in topic.partition_indexes:
                if not allowed:
                    denied = rows.DESCRIBE_PRODUCERS_TOPIC.code
                    parts.append(PartitionResponse(partition_index=index, error_code=denied))
                    continue
                hosted = self.replicas.get(topic.name, index)
                if hosted is None or hosted.leader is None:
                    error: int = ErrorCode.NOT_LEADER_OR_FOLLOWER
                    if name_error(topic.name) is not None:
                        error = ErrorCode.INVALID_TOPIC_EXCEPTION
                    elif hosted is None:
                        error = self.replicas.absent_error(topic.name, index)
                    parts.append(PartitionResponse(partition_index=index, error_code=error))
                    continue
                parts.append(
                    PartitionResponse(
                        partition_index=index,
                        active_producers=tuple(
                            ProducerState(
                                producer_id=entry.producer_id,
                                producer_epoch=entry.epoch,
                                last_sequence=entry.last_sequence,
                                last_timestamp=entry.last_timestamp,
                                coordinator_epoch=entry.coordinator_epoch,
                                current_txn_start_offset=entry.transaction_first_offset,
                            )
                            for entry in hosted.log.producers.entries.values()
                        ),
                    )
                )
            topics.append(TopicResponse(name=topic.name, partitions=tuple(parts)))
        call.reply(DescribeProducersResponse(topics=tuple(topics)))


def build(components: NodeComponents) -> Handler:
    return DescribeProducers(components.replicas).handle
