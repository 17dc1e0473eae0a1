"""The topics of coordinators are made when they are first needed.

They get as many replicas as they are to have and there are brokers for. One request at a time asks for a topic, however
many clients wait for it, and a controller that is away is reported once a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

from tanist.broker.context import NodeContext
from tanist.broker.metadata.awaited_metadata import AwaitedMetadata
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.view import MetadataView
from tanist.broker.throttled import Throttled
from tanist.events.metadata import InternalTopicNotCreated
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from tanist.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreateTopicsResponse

_CREATE_TOPICS_VERSION = 5
"""The last before THROTTLING_QUOTA_EXCEEDED: what a client needs is made, and it is throttled afterwards (KIP-599)."""
_CREATE_TIMEOUT_MS = 5_000
_KNOWN_HERE_MS = 1_000
"""How long this broker's metadata may be behind the controller's word."""
_FAILED_INTERVAL_MS: Final = 60_000
_ANSWERED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class Creation(Protocol):
    """What waits for a topic: mostly a `Continuation` of a request."""

    def __call__(self) -> None:
        """The broker knows the topic, or it cannot be made now."""

    def fail(self, error: Exception) -> None:
        """An exception was met."""


class InternalTopics:
    """Makes `__consumer_offsets`, `__transaction_state` and `__share_group_state`; and dead letter topics."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        controller_channel: ControllerChannel,
        awaited_metadata: AwaitedMetadata,
    ) -> None:
        self._context = context
        self._metadata = metadata
        self._controller_channel = controller_channel
        self._awaited_metadata = awaited_metadata
        self._waiting: dict[str, list[Creation]] = {}
        """By the topic that the controller has been asked for."""
        self._failed = Throttled(context.clock, context.events, _FAILED_INTERVAL_MS)

    def create(self, name: str, then: Creation, topic: CreatableTopic | None = None) -> None:
        """Call `then` once the broker knows the topic, or it cannot be made now. `topic`: if it is no coordinator's."""
        waiting = self._waiting.setdefault(name, [])
        waiting.append(then)
        if len(waiting) > 1:
            return
        creation = CreateTopicsRequest(topics=(topic or self._new_topic(name),), timeout_ms=_CREATE_TIMEOUT_MS)
        self._controller_channel.call(
            creation, _CREATE_TOPICS_VERSION, _CREATE_TIMEOUT_MS, partial(self._created, name)
        )

    def _created(self, name: str, response: CreateTopicsResponse | None) -> None:
        waiting = self._waiting.pop(name)
        try:
            self._handle_response(name, response, waiting)
        except Exception as error:
            for then in waiting:
                then.fail(error)

    def _handle_response(self, name: str, response: CreateTopicsResponse | None, waiting: Sequence[Creation]) -> None:
        def go_on() -> None:
            for then in waiting:
                then()

        if response is None or response.topics[0].error_code not in _ANSWERED:
            error = "" if response is None else ErrorCode.name_of(response.topics[0].error_code)
            self._failed.emit(lambda left_out: InternalTopicNotCreated(name, error, left_out))
            go_on()
            return
        self._awaited_metadata.when_known([name], self._context.clock.now_ms() + _KNOWN_HERE_MS, go_on)

    def _new_topic(self, name: str) -> CreatableTopic:
        config = self._context.config
        brokers = len(self._metadata.image.brokers)
        if name == OFFSETS_TOPIC:
            partitions = config.offsets_topic_num_partitions
            replicas = min(config.offsets_topic_replication_factor, brokers)
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            }
        elif name == SHARE_STATE_TOPIC:
            partitions = config.share_coordinator_state_topic_num_partitions
            replicas = min(config.share_coordinator_state_topic_replication_factor, brokers)
            settings = {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(min(config.share_coordinator_state_topic_min_isr, replicas)),
                "retention.ms": "-1",
                "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
            }
        else:
            partitions = config.transaction_state_log_num_partitions
            replicas = min(config.transaction_state_log_replication_factor, brokers)
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(min(config.transaction_state_log_min_isr, replicas)),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            }
        return CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in settings.items()),
        )
