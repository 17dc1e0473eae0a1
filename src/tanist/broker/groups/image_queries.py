"""The questions of consumer groups to this broker's metadata: topics, and the timing of a group's members."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.metadata.view import MetadataView
from tanist.controller.configs.settings import GROUP_RESOURCE, Levels, resolve_group_config
from tanist.coordinator.rebalance import ConsumerTiming


class TopicsOfImage:
    """The topics of this broker's metadata, for consumer groups."""

    def __init__(self, metadata: MetadataView) -> None:
        self._metadata = metadata
        self.version = metadata.applied_offset

    def find(self, name: str) -> tuple[UUID, int] | None:
        topic = self._metadata.image.topic(name)
        return None if topic is None else (topic.topic_id, len(topic.partitions))

    def name_of(self, topic_id: UUID) -> str | None:
        topic = self._metadata.image.topics.get(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        return self._metadata.image.topic_ids.keys()


class TimingOfImage:
    """Timing of a group's members: its GROUP resource's configuration within this broker's bounds (KIP-848)."""

    def __init__(self, context: NodeContext, metadata: MetadataView) -> None:
        self._context = context
        self._metadata = metadata

    def __call__(self, group_id: str) -> ConsumerTiming | None:
        own = self._metadata.image.configs.get((GROUP_RESOURCE, group_id))
        if not own:
            return None
        config = self._context.config
        levels = Levels.of(self._metadata.image.configs, self._context.node_id, config.static)

        def bounded(name: str, low: int, high: int) -> int:
            value = int(resolve_group_config(name, own, levels).value or low)
            # Bounds may have changed since the group got its value. The broker's own value needs none.
            return max(low, min(value, high)) if name in own else value

        return ConsumerTiming(
            bounded(
                "consumer.session.timeout.ms",
                config.group_consumer_min_session_timeout_ms,
                config.group_consumer_max_session_timeout_ms,
            ),
            bounded(
                "consumer.heartbeat.interval.ms",
                config.group_consumer_min_heartbeat_interval_ms,
                config.group_consumer_max_heartbeat_interval_ms,
            ),
        )
