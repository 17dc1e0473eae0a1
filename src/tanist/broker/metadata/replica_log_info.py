"""The inquiries of the active controller: where the logs of a broker end, for an unclean recovery.

Owns the way from an `AskReplica` to requests on the broker's listener between brokers, and from its answers to
`LogInfo`s. A broker is first asked which requests it has: one with GetReplicaLogInfo gets that, any other (Apache
Kafka's) is asked by ListOffsets and Fetch (`replica_log_end`). It never asks twice by itself: that is decided by
`controller.partitions.unclean_recovery`.

Only GetReplicaLogInfo has the broker's epoch in its answer. For the others it is inferred: a connection belongs to the
registration by which it was opened, and is closed when there is another one. An answer carries the epoch of its
connection's registration, whenever it is read. docs/kip966.md says why that is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.logins import ChannelLogin
from tanist.broker.metadata.replica_log_end import ReplicaLogEnds
from tanist.broker.metadata.view import endpoint_in, has_sasl_in, has_tls_in
from tanist.broker.network.channel import Channel
from tanist.controller.image.image import MetadataImage
from tanist.controller.partitions.log_info import LogInfo
from tanist.controller.partitions.unclean_recovery import AskReplica
from tanist.events.metadata import LogEndsAsked, LogInfoUnanswered, LogInfoUnsupported
from tanist.wire.apis import NODE_SOFTWARE, ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.messages.get_replica_log_info_request import GetReplicaLogInfoRequest, TopicPartitions
from tanist.wire.messages.get_replica_log_info_response import GetReplicaLogInfoResponse

_TIMEOUT_MS = 5_000
"""An answer takes no I/O; a broker that gives none until then is stuck or cut off, and is asked again."""
_API_VERSIONS_VERSION = 3
_SOFTWARE_VERSION = "1"

OnAnswer = Callable[[int, "dict[TopicIdPartition, LogInfo] | None"], None]
"""The broker, and where its logs end; None: it did not answer."""
Answered = Callable[["dict[TopicIdPartition, LogInfo] | None"], None]


class ReplicaLogInfoRequests:
    """The inquiries of one node's controller."""

    def __init__(self, context: NodeContext, image: Callable[[], MetadataImage], on_answer: OnAnswer) -> None:
        """`image`: the active controller's, with all that it has decided."""
        self._context = context
        self._image = image
        self._on_answer = on_answer
        self._peers: dict[int, _Peer] = {}
        self._silent: set[int] = set()
        """Brokers that have not answered when they were last asked."""

    def ask(self, question: AskReplica) -> None:
        broker_id = question.broker_id

        def handle_response(logs: dict[TopicIdPartition, LogInfo] | None) -> None:
            self._note_silence(question, logs)
            self._on_answer(broker_id, logs)

        peer = self._peer(broker_id)
        if peer is None:
            self._context.clock.call_soon(lambda: handle_response(None))
        else:
            peer.ask(question.partitions, handle_response)

    def close(self) -> None:
        """This node's controller has nothing to ask any more. Questions under way end without an answer."""
        peers, self._peers = self._peers, {}
        self._silent.clear()
        for peer in peers.values():
            peer.close()

    def has_last_answer_to_give(self, broker_id: int) -> bool:
        """Whether the next answer of the broker is the last one of the inquiry under way."""
        peer = self._peers.get(broker_id)
        return peer is not None and peer.has_last_answer_to_give

    def _peer(self, broker_id: int) -> _Peer | None:
        """The connection to a broker by its present registration."""
        image = self._image()
        endpoint = endpoint_in(image, broker_id, self._context.config.inter_broker_listener_name)
        known = self._peers.get(broker_id)
        if endpoint is not None and known is not None and known.belongs_to(image.brokers[broker_id].epoch, endpoint):
            return known
        if known is not None:
            del self._peers[broker_id]
            known.close()
        if endpoint is None:
            return None
        # The file of a node that is only a controller need not say how brokers talk to each other.
        listener = self._context.config.inter_broker_listener_name
        tls = self._context.config.tls.to_brokers if has_tls_in(image, broker_id, listener) else None
        login = self._login(tls) if has_sasl_in(image, broker_id, listener) else None
        peer = self._peers[broker_id] = _Peer(
            self._context, self._image, broker_id, image.brokers[broker_id].epoch, endpoint, tls, login
        )
        return peer

    def _login(self, tls: str | None) -> ChannelLogin | None:
        """By what to authenticate there. A password of controllers that talk by TLS is shown to nobody without it."""
        config = self._context.config
        is_controllers = config.sasl.between_brokers is config.sasl.to_controllers
        if is_controllers and tls is None and config.tls.to_controllers is not None:
            return None
        return self._context.logins.to_brokers

    def _note_silence(self, question: AskReplica, logs: dict[TopicIdPartition, LogInfo] | None) -> None:
        broker_id = question.broker_id
        if logs:
            self._silent.discard(broker_id)
            return
        again = broker_id in self._silent
        self._silent.add(broker_id)
        self._context.events.emit(LogInfoUnanswered(broker_id, len(question.partitions), again))


class _Peer:
    """One registration of a broker, and the connection to it."""

    def __init__(
        self,
        context: NodeContext,
        image: Callable[[], MetadataImage],
        broker_id: int,
        broker_epoch: int,
        endpoint: tuple[str, int],
        tls: str | None,
        login: ChannelLogin | None,
    ) -> None:
        self._context = context
        self._image = image
        self._broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._endpoint = endpoint
        self._client_id = f"controller-{context.node_id}-to-broker-{broker_id}"
        self._has_log_info: bool | None = None
        """Whether the broker has GetReplicaLogInfo; None: not known yet."""
        self._conversation: ReplicaLogEnds | None = None
        self._channel = Channel(
            context.clock,
            context.network,
            *endpoint,
            client_id=self._client_id,
            max_frame_bytes=context.config.socket_request_max_bytes,
            login=login,
            tls=tls,
        )

    def belongs_to(self, broker_epoch: int, endpoint: tuple[str, int]) -> bool:
        return (self.broker_epoch, self._endpoint) == (broker_epoch, endpoint)

    def close(self) -> None:
        self._channel.close()

    @property
    def has_last_answer_to_give(self) -> bool:
        """Whether the inquiry under way ends with the next answer."""
        return bool(self._has_log_info) or (self._conversation is not None and self._conversation.confirming)

    def ask(self, partitions: Sequence[TopicIdPartition], on_answer: Answered) -> None:
        if self._has_log_info is None:
            request = ApiVersionsRequest(client_software_name=NODE_SOFTWARE, client_software_version=_SOFTWARE_VERSION)
            self._channel.call(
                request,
                _API_VERSIONS_VERSION,
                _TIMEOUT_MS,
                lambda response: self._versions_known(response, partitions, on_answer),
            )
        elif self._has_log_info:
            self._ask_for_log_info(partitions, on_answer)
        else:
            self._ask_for_ends(partitions, on_answer)

    def _versions_known(
        self, response: ApiVersionsResponse | None, partitions: Sequence[TopicIdPartition], on_answer: Answered
    ) -> None:
        if response is None or response.error_code:
            on_answer(None)
            return
        self._has_log_info = any(each.api_key == ApiKey.GET_REPLICA_LOG_INFO for each in response.api_keys)
        if not self._has_log_info:
            self._context.events.emit(LogInfoUnsupported(self._broker_id))
        self.ask(partitions, on_answer)

    # -- GetReplicaLogInfo

    def _ask_for_log_info(self, partitions: Sequence[TopicIdPartition], on_answer: Answered) -> None:
        by_topic: dict[UUID, list[int]] = {}
        for topic_id, partition in partitions:
            by_topic.setdefault(topic_id, []).append(partition)
        request = GetReplicaLogInfoRequest(
            broker_id=self._broker_id,
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, partitions=tuple(indexes)) for topic_id, indexes in by_topic.items()
            ),
        )
        self._channel.call(
            request, 0, _TIMEOUT_MS, lambda response: on_answer(None if response is None else _log_infos(response))
        )

    # -- ListOffsets and Fetch

    def _ask_for_ends(self, partitions: Sequence[TopicIdPartition], on_answer: Answered) -> None:
        image = self._image()
        asked: dict[TopicIdPartition, tuple[str, int]] = {}
        for key in partitions:
            state = image.partition(*key)
            if state is not None:
                asked[key] = (image.topics[key[0]].name, state.leader_epoch)
        self._conversation = ReplicaLogEnds(
            self._channel, self._client_id, self.broker_epoch, asked, _TIMEOUT_MS, on_answer
        )
        self._context.events.emit(LogEndsAsked(self._broker_id, len(asked)))
        self._conversation.begin()


def _log_infos(response: GetReplicaLogInfoResponse) -> dict[TopicIdPartition, LogInfo]:
    """The logs of the response that have no error."""
    return {
        (topic.topic_id, each.partition): LogInfo(
            broker_epoch=response.broker_epoch,
            leader_epoch=each.current_leader_epoch,
            last_epoch=each.last_written_leader_epoch,
            log_end_offset=each.log_end_offset,
            epochs=tuple((entry.leader_epoch, entry.start_offset) for entry in each.leader_epochs),
        )
        for topic in response.topic_partition_log_info_list
        for each in topic.partition_log_info
        if each.error_code == ErrorCode.NONE
    }
