"""GetReplicaLogInfo as the controller asks it: one channel to each broker whose logs are to be compared.

Owns the way from an `AskReplica` to a request on the broker's listener between brokers, and from its response to
`LogInfo`s. It never asks twice by itself: that is decided by `controller.unclean_recovery`. A broker that does not know
the request (an older one, or Apache Kafka's) closes the connection: it has not answered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.network.channel import Channel
from tanist.controller.unclean_recovery import AskReplica, LogInfo
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.get_replica_log_info_request import GetReplicaLogInfoRequest, TopicPartitions
from tanist.wire.messages.get_replica_log_info_response import GetReplicaLogInfoResponse

_TIMEOUT_MS = 5_000
"""An answer takes no I/O; who has none after this is stuck or cut off, and is asked again."""

OnAnswer = Callable[[int, "dict[TopicIdPartition, LogInfo] | None"], None]
"""Broker, and what it said of its logs; None: it said nothing."""


class ReplicaLogInfoRequests:
    """The questions of one node's controller."""

    def __init__(
        self, context: NodeContext, endpoint: Callable[[int], tuple[str, int] | None], on_answer: OnAnswer
    ) -> None:
        """`endpoint`: where a broker listens for other nodes, by its present registration."""
        self._context = context
        self._endpoint = endpoint
        self._on_answer = on_answer
        self._channels: dict[int, Channel] = {}

    def ask(self, question: AskReplica) -> None:
        channel = self._channel(question.broker_id)
        if channel is None:
            self._context.clock.call_soon(lambda: self._on_answer(question.broker_id, None))
            return
        by_topic: dict[UUID, list[int]] = {}
        for topic_id, partition in question.partitions:
            by_topic.setdefault(topic_id, []).append(partition)
        request = GetReplicaLogInfoRequest(
            broker_id=question.broker_id,
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in by_topic.items()
            ),
        )
        channel.call(request, 0, _TIMEOUT_MS, partial(self._answered, question.broker_id))

    def close(self) -> None:
        """This node's controller has nothing to ask any more. Questions under way end without an answer."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close()

    def _channel(self, broker_id: int) -> Channel | None:
        """The channel to a broker at the address of its present registration."""
        endpoint = self._endpoint(broker_id)
        known = self._channels.get(broker_id)
        if known is not None and endpoint == (known.host, known.port):
            return known
        if known is not None:
            del self._channels[broker_id]
            known.close()
        if endpoint is None:
            return None
        channel = self._channels[broker_id] = Channel(
            self._context.clock,
            self._context.network,
            *endpoint,
            client_id=f"controller-{self._context.node_id}-to-broker-{broker_id}",
            max_frame_bytes=self._context.config.socket_request_max_bytes,
        )
        return channel

    def _answered(self, broker_id: int, response: GetReplicaLogInfoResponse | None) -> None:
        self._on_answer(broker_id, None if response is None else _log_infos(response))


def _log_infos(response: GetReplicaLogInfoResponse) -> dict[TopicIdPartition, LogInfo]:
    """The logs of the response that have no error."""
    return {
        (topic.topic_id, each.partition): LogInfo(
            broker_epoch=response.broker_epoch,
            leader_epoch=each.current_leader_epoch,
            last_epoch=each.last_written_leader_epoch,
            log_end_offset=each.log_end_offset,
        )
        for topic in response.topic_partition_log_info_list
        for each in topic.partition_log_info
        if each.error_code == ErrorCode.NONE
    }
