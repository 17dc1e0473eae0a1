"""Metadata (key 3), versions 0-13: brokers, topics, leaders; creation of topics on demand.

The answer comes from the committed image alone, so any broker gives it. Encoded answers are kept until the image
changes, because every client of a big cluster asks for the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from tanist.broker.api.authorized_operations import NOT_ASKED
from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.metadata.awaited_metadata import AwaitedMetadata
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.image.image import MetadataImage, TopicImage
from tanist.controller.topic_names import name_error
from tanist.security import requirements as rows
from tanist.wire.error_responses import error_response
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import encode_response
from tanist.wire.internal_topics import INTERNAL_TOPICS
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreateTopicsResponse
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tanist.wire.schema import ZERO_UUID

_CREATE_TOPICS_VERSION = 5
"""The last before THROTTLING_QUOTA_EXCEEDED: what a client needs is made, and it is throttled afterwards (KIP-599)."""
_CREATE_TIMEOUT_MS = 5_000
_MAX_CACHED = 64
_NULL_NAMES_VERSION = 12


@dataclass(frozen=True, slots=True)
class Metadata:
    """The handler of Metadata."""

    context: NodeContext
    metadata: MetadataView
    quorum: MetadataQuorum
    controller_channel: ControllerChannel
    awaited_metadata: AwaitedMetadata
    encoded: dict[tuple[int, str, tuple[bool, bool], object], tuple[int, bytes]] = field(default_factory=dict)
    """Answers for all topics, by (version, listener, operations, who sees them): the image's version and the frame."""

    def handle(self, request: MetadataRequest, call: Call) -> None:
        """Describe the topics asked for; None (in v0: an empty list) asks for all."""
        topics = request.topics
        if topics is not None and not topics and call.version == 0:
            topics = None
        if topics is None:
            self._reply_all(call, request)
            return
        if call.version < _NULL_NAMES_VERSION and any(
            topic.name is None or topic.topic_id != ZERO_UUID for topic in topics
        ):
            invalid, reason = ErrorCode.INVALID_REQUEST, f"version {call.version} has topics by name only"
            call.reply(error_response(request, call.version, invalid, reason))
            return
        topics = request.topics = _asked(topics)
        missing = [
            topic.name
            for topic in topics
            if topic.name and topic.topic_id == ZERO_UUID and topic.name not in self.metadata.image.topic_ids
        ]
        allowed = request.allow_auto_topic_creation if call.version >= 4 else True
        denied: frozenset[str] = frozenset()
        if missing and allowed and self.context.config.auto_create_topics_enable:
            described = [name for name in dict.fromkeys(missing) if call.may(rows.METADATA_NAMED, name)]
            denied = frozenset(name for name in described if not call.may(rows.METADATA_CREATE, name))
            valid = [name for name in described if name not in denied and name_error(name) is None]
            if valid:
                self._create(call, request, valid, denied)
                return
        call.reply(self._response(call, request, uncreatable=denied))

    def _reply_all(self, call: Call, request: MetadataRequest) -> None:
        """All topics: encode once per change of the image."""
        version, listener = call.version, call.listener
        operations = (request.include_cluster_authorized_operations, request.include_topic_authorized_operations)
        key = (version, listener, operations, call.session.access.visible(call.session))
        cached = self.encoded.get(key)
        if cached is None or cached[0] != self.metadata.version:
            frame = encode_response(self._response(call, request, everything=True), version, 0)
            if len(self.encoded) >= _MAX_CACHED:
                self.encoded.clear()
            cached = self.encoded[key] = (self.metadata.version, frame)
        frame = cached[1]
        # Length, then the correlation id, then what is the same for everybody.
        call.reply_chunks([frame[:4] + call.header.correlation_id.to_bytes(4, "big", signed=True) + frame[8:]])

    def _create(self, call: Call, request: MetadataRequest, names: list[str], denied: frozenset[str]) -> None:
        """Have the controller create the missing topics, and answer when they are there (or could not be made).

        `denied`: the missing topics that the client may not create.
        """
        creation = CreateTopicsRequest(
            topics=tuple(CreatableTopic(name=name, num_partitions=-1, replication_factor=-1) for name in names),
            timeout_ms=_CREATE_TIMEOUT_MS,
        )
        deadline_ms = self.context.clock.now_ms() + _CREATE_TIMEOUT_MS

        def created(response: CreateTopicsResponse | None) -> None:
            if call.connection.closed:
                return
            if response is None:
                if self.context.clock.now_ms() + 50 < deadline_ms:
                    self.context.clock.call_at(self.context.clock.now_ms() + 50, call.later(ask))
                else:
                    answer()
                return
            # The controller answers when the records are committed; this broker may be a moment behind.
            self.awaited_metadata.when_known(names, self.context.clock.now_ms() + 1_000, call.later(answer))

        def answer() -> None:
            call.reply(self._response(call, request, uncreatable=denied))

        def ask() -> None:
            self.controller_channel.call(creation, _CREATE_TOPICS_VERSION, _CREATE_TIMEOUT_MS, call.later(created))

        ask()

    def _response(
        self,
        call: Call,
        request: MetadataRequest,
        *,
        everything: bool = False,
        uncreatable: frozenset[str] = frozenset(),
    ) -> MetadataResponse:
        image = self.metadata.image

        def operations(name: str) -> int:
            asked = request.include_topic_authorized_operations
            return call.operations(rows.METADATA_TOPIC_BITS, name) if asked else NOT_ASKED

        listener = call.listener
        brokers: list[MetadataResponseBroker] = []
        alive: set[int] = set()
        for broker in sorted(image.brokers.values(), key=lambda b: b.id):
            if broker.fenced:
                continue
            for endpoint in broker.endpoints:
                if endpoint.name == listener:
                    brokers.append(
                        MetadataResponseBroker(
                            node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
                        )
                    )
                    alive.add(broker.id)
        if everything:
            topics = [
                _describe(image, image.topics[topic_id], alive, operations(name))
                for name, topic_id in sorted(image.topic_ids.items())
                if call.may(rows.METADATA_ALL, name)
            ]
        else:
            topics = []
            for wanted in request.topics or ():
                topic_id = wanted.topic_id
                name = wanted.name
                if topic_id == ZERO_UUID:
                    name = name or ""
                    if name in uncreatable or not call.may(rows.METADATA_NAMED, name):
                        topics.append(MetadataResponseTopic(error_code=rows.METADATA_NAMED.code, name=name))
                        continue
                    topic = image.topic(name)
                    if topic is None:
                        invalid = name_error(name) is not None
                        error = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                        topics.append(
                            MetadataResponseTopic(
                                error_code=error, name=name, topic_authorized_operations=operations(name)
                            )
                        )
                        continue
                else:
                    topic = image.topics.get(topic_id)
                    if topic is None or not call.may(rows.METADATA_BY_ID, topic.name):
                        unnamed = None if call.version >= _NULL_NAMES_VERSION else ""
                        error = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else rows.METADATA_BY_ID.code
                        topics.append(MetadataResponseTopic(error_code=error, name=unnamed, topic_id=topic_id))
                        continue
                topics.append(_describe(image, topic, alive, operations(topic.name)))
        cluster_operations = NOT_ASKED
        if request.include_cluster_authorized_operations:
            described = call.may(rows.METADATA_CLUSTER)
            cluster_operations = call.operations(rows.METADATA_CLUSTER_BITS) if described else 0
        return MetadataResponse(
            brokers=tuple(brokers),
            cluster_id=self.context.cluster_id,
            controller_id=self._controller_for_clients(alive),
            topics=tuple(topics),
            cluster_authorized_operations=cluster_operations,
        )

    def _controller_for_clients(self, alive: set[int]) -> int:
        """A broker for clients' admin requests. All forward, so any will do; best the active controller's own."""
        leader_id = self.quorum.leader_id
        if leader_id in alive:
            return leader_id
        return min(alive) if alive else -1


def build(components: NodeComponents) -> Handler:
    return Metadata(
        components.context,
        components.metadata,
        components.quorum,
        components.controller_channel,
        components.awaited_metadata,
    ).handle


def _asked(topics: Iterable[MetadataRequestTopic]) -> tuple[MetadataRequestTopic, ...]:
    """Each topic once. With one id, all that is asked for by name is left out, as in Apache Kafka."""
    by_id = {each.topic_id: each for each in topics if each.topic_id != ZERO_UUID}
    return tuple(by_id.values() or {each.name: each for each in topics}.values())


def _describe(image: MetadataImage, topic: TopicImage, alive: set[int], operations: int) -> MetadataResponseTopic:
    partitions: list[MetadataResponsePartition] = []
    for index, state in sorted(topic.partitions.items()):
        offline = tuple(b for b in state.replicas if b not in alive or replica_offline(image, topic.topic_id, index, b))
        leader = state.leader
        error: int = ErrorCode.NONE
        if leader not in alive:
            # No leader, or one that clients of this listener cannot reach, which is the same to them.
            leader = -1
            error = ErrorCode.LEADER_NOT_AVAILABLE
        partitions.append(
            MetadataResponsePartition(
                error_code=error,
                partition_index=index,
                leader_id=leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.isr,
                offline_replicas=offline,
            )
        )
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(partitions),
        topic_authorized_operations=operations,
    )


def replica_offline(image: MetadataImage, topic_id: UUID, index: int, broker_id: int) -> bool:
    """The replica's broker is gone or fenced, or the directory it lies in is."""
    broker = image.brokers.get(broker_id)
    state = image.partition(topic_id, index)
    if broker is None or broker.fenced or state is None:
        return True
    return not broker.has_online_directory(state.directory_of(broker_id))
