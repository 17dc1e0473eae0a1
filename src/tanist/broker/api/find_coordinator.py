"""FindCoordinator (key 10), versions 0-6: who has the partition of `__consumer_offsets` that a group is in.

The topic is made when it is first asked for, with as many replicas as it is to have and there are brokers for. There
are no transactions and no share groups yet: a transactional producer can't do without a coordinator, so it is refused
for good instead of being kept waiting. The error is the one that every client library reports at once
(docs/clients.md): librdkafka asks again after any other.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.context import NodeContext
from tanist.broker.metadata.awaited_topics import AwaitedTopics
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.client_connection import Call, Handler
from tanist.broker.network.connections import Connections
from tanist.broker.parts import BrokerParts
from tanist.coordinator.partitioning import partition_of
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tanist.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreateTopicsResponse
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse

_GROUP, _TRANSACTION = 0, 1
_KINDS = {
    _TRANSACTION: ("transactions", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    2: ("share groups", ErrorCode.COORDINATOR_NOT_AVAILABLE),
}
_BATCHED_VERSION = 4
_CREATE_TOPICS_VERSION = 7
_CREATE_TIMEOUT_MS = 5_000
_KNOWN_HERE_MS = 1_000
"""How long this broker's metadata may be behind the controller's word."""
_ANSWERED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """The handler of FindCoordinator."""

    context: NodeContext
    metadata: MetadataView
    controller_channel: ControllerChannel
    awaited_topics: AwaitedTopics
    connections: Connections

    def handle(self, request: FindCoordinatorRequest, call: Call) -> None:
        """Name the coordinator of each group, or say why there is none."""
        if request.key_type == _GROUP and self.metadata.image.topic(OFFSETS_TOPIC) is None:
            call.wait()
            self._create_topic(request, call)
            return
        self._answer(request, call)

    def _create_topic(self, request: FindCoordinatorRequest, call: Call) -> None:
        config = self.context.config
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        }
        topic = CreatableTopic(
            name=OFFSETS_TOPIC,
            num_partitions=config.offsets_topic_num_partitions,
            replication_factor=min(config.offsets_topic_replication_factor, len(self.metadata.image.brokers)),
            configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in settings.items()),
        )

        def created(response: CreateTopicsResponse | None) -> None:
            if response is None or response.topics[0].error_code not in _ANSWERED:
                why = "no controller answers" if response is None else ErrorCode(response.topics[0].error_code).name
                self.context.report("WARN", f"{OFFSETS_TOPIC} can't be created: {why}")
                self._answer(request, call)
                return
            deadline_ms = self.context.clock.now_ms() + _KNOWN_HERE_MS
            self.awaited_topics.when_known([OFFSETS_TOPIC], deadline_ms, lambda: self._answer(request, call))

        creation = CreateTopicsRequest(topics=(topic,), timeout_ms=_CREATE_TIMEOUT_MS)
        self.controller_channel.call(creation, _CREATE_TOPICS_VERSION, _CREATE_TIMEOUT_MS, created)

    def _answer(self, request: FindCoordinatorRequest, call: Call) -> None:
        keys = request.coordinator_keys if call.version >= _BATCHED_VERSION else (request.key,)
        if request.key_type == _TRANSACTION and keys:
            self.connections.transaction_refused(call, keys[0])
        found = tuple(self._coordinator(request.key_type, key, call.listener) for key in keys)
        if call.version >= _BATCHED_VERSION:
            call.reply(FindCoordinatorResponse(coordinators=found))
            return
        only = found[0]
        call.reply(
            FindCoordinatorResponse(
                error_code=only.error_code,
                # Apache Kafka gives a name to "no error" here, and only here.
                error_message=only.error_message if only.error_code else "NONE",
                node_id=only.node_id,
                host=only.host,
                port=only.port,
            )
        )

    def _coordinator(self, key_type: int, key: str, listener: str) -> Coordinator:
        if key_type != _GROUP:
            kind, error = _KINDS.get(key_type, (f"coordinators of type {key_type}", ErrorCode.INVALID_REQUEST))
            return _none(key, error, f"tanist has no {kind} yet")
        topic = self.metadata.image.topic(OFFSETS_TOPIC)
        if topic is None:
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} is not there yet")
        index = partition_of(key, len(topic.partitions))
        leader = topic.partitions[index].leader
        endpoints = self.metadata.endpoints_of([leader], listener) if leader >= 0 else ()
        broker = self.metadata.image.brokers.get(leader)
        if not endpoints or broker is None or broker.fenced:
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC}-{index} has no leader")
        return Coordinator(key=key, node_id=leader, host=endpoints[0].host, port=endpoints[0].port)


def build(parts: BrokerParts) -> Handler:
    return FindCoordinator(
        parts.context, parts.metadata, parts.controller_channel, parts.awaited_topics, parts.connections
    ).handle


def _none(key: str, error: int, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=error, error_message=message)
