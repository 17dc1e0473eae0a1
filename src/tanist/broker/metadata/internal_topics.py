"""The topics of coordinators are made when they are first needed.

They get as many replicas as they are to have and there are brokers for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tanist.broker.context import NodeContext
from tanist.broker.metadata.awaited_topics import AwaitedTopics
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.view import MetadataView
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tanist.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreateTopicsResponse

_CREATE_TOPICS_VERSION = 7
_CREATE_TIMEOUT_MS = 5_000
_KNOWN_HERE_MS = 1_000
"""How long this broker's metadata may be behind the controller's word."""
_ANSWERED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


@dataclass(frozen=True, slots=True)
class InternalTopics:
    """Makes `__consumer_offsets` and `__transaction_state`."""

    context: NodeContext
    metadata: MetadataView
    controller_channel: ControllerChannel
    awaited_topics: AwaitedTopics

    def create(self, name: str, then: Callable[[], None]) -> None:
        """Call `then` once the broker knows the topic, or it cannot be made now."""
        topic = self._new_topic(name)

        def created(response: CreateTopicsResponse | None) -> None:
            if response is None or response.topics[0].error_code not in _ANSWERED:
                why = "no controller answers" if response is None else ErrorCode(response.topics[0].error_code).name
                self.context.report("WARN", f"{name} can't be created: {why}")
                then()
                return
            deadline_ms = self.context.clock.now_ms() + _KNOWN_HERE_MS
            self.awaited_topics.when_known([name], deadline_ms, then)

        creation = CreateTopicsRequest(topics=(topic,), timeout_ms=_CREATE_TIMEOUT_MS)
        self.controller_channel.call(creation, _CREATE_TOPICS_VERSION, _CREATE_TIMEOUT_MS, created)

    def _new_topic(self, name: str) -> CreatableTopic:
        config = self.context.config
        brokers = len(self.metadata.image.brokers)
        if name == OFFSETS_TOPIC:
            partitions = config.offsets_topic_num_partitions
            replicas = min(config.offsets_topic_replication_factor, brokers)
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
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
