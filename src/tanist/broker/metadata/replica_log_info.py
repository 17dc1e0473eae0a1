"""GetReplicaLogInfo as the controller asks it: one channel to each broker whose logs are to be compared.

Owns the way from an `AskReplica` to a request on the broker's listener between brokers, and from its response to
`LogInfo`s. It never asks twice by itself: that is decided by `controller.unclean_recovery`. A broker that does not know
the request (an older one, or Apache Kafka's) closes the connection: it has not answered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from tanist.broker.metadata.view import endpoint_in
from tanist.broker.network.channel import Channel
from tanist.controller.unclean_recovery import AskReplica, LogInfo
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.get_replica_log_info_request import GetReplicaLogInfoRequest, TopicPartitions
from tanist.wire.messages.get_replica_log_info_response import GetReplicaLogInfoResponse

if TYPE_CHECKING:
    from tanist.broker.node import Node

_TIMEOUT_MS = 5_000
"""An answer takes no I/O; who has none after this is stuck or cut off, and is asked again."""

OnAnswer = Callable[[int, "dict[TopicIdPartition, LogInfo] | None"], None]
"""Broker, and what it said of its logs; None: it said nothing."""


class LogInquiries:
    """The questions of one node's controller."""

    def __init__(self, node: Node, on_answer: OnAnswer) -> None:
        self._node = node
        self._on_answer = on_answer
        self._channels: dict[int, Channel] = {}

    def ask(self, question: AskReplica) -> None:
        channel = self._channel(question.broker_id)
        if channel is None:
            self._node.clock.call_soon(lambda: self._on_answer(question.broker_id, None))
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
        host = self._node.quorum.controller_host
        endpoint = (
            None
            if host is None
            else endpoint_in(host.controller.image, broker_id, self._node.config.inter_broker_listener_name)
        )
        known = self._channels.get(broker_id)
        if known is not None and endpoint == (known.host, known.port):
            return known
        if known is not None:
            del self._channels[broker_id]
            known.close()
        if endpoint is None:
            return None
        channel = self._channels[broker_id] = Channel(
            self._node.clock,
            self._node.network,
            *endpoint,
            client_id=f"controller-{self._node.node_id}-to-broker-{broker_id}",
            max_frame_bytes=self._node.config.socket_request_max_bytes,
        )
        return channel

    def _answered(self, broker_id: int, response: GetReplicaLogInfoResponse | None) -> None:
        self._on_answer(broker_id, None if response is None else _log_infos(response))


def _log_infos(response: GetReplicaLogInfoResponse) -> dict[TopicIdPartition, LogInfo]:
    """What the response says without an error."""
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
