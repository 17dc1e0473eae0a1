"""Configurations as they hold on this node: resolved from the committed metadata, the properties file and defaults.

`controller.configs.settings` has the order of the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tanist.broker.metadata.view import MetadataView
from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.controller.configs.settings import (
    PRODUCER_ID_EXPIRATION_MS,
    TOPIC_RESOURCE,
    Levels,
    resolve_broker_config,
    resolve_topic_config,
    topic_configs,
)
from tanist.log.config import LogConfig


class ResolvedConfigs:
    """Lookups; nothing is kept, so they are as new as the metadata."""

    __slots__ = ("_metadata", "_node_id", "_static")

    def __init__(self, metadata: MetadataView, node_id: int, static: Mapping[str, str]) -> None:
        self._metadata = metadata
        self._node_id = node_id
        self._static = static

    @property
    def _levels(self) -> Levels:
        return Levels.of(self._metadata.image.configs, self._node_id, self._static)

    def broker_value(self, name: str) -> str | None:
        """A broker setting, as text."""
        return resolve_broker_config(name, self._levels).value

    def broker_setting(self, name: str) -> Any:
        """A broker setting, parsed; None if it has no value."""
        value = self.broker_value(name)
        return None if value is None else BROKER_SETTINGS[name].parse(value)

    def topic_value(self, name: str, topic: str) -> str | None:
        """A setting of a topic, or the broker's for it, as text. Before the metadata is loaded: the broker's."""
        own = self._metadata.image.configs.get((TOPIC_RESOURCE, topic), {})
        return resolve_topic_config(name, own, self._levels).value

    def log_config(self, topic: str) -> LogConfig:
        """The configuration of the topic's logs."""
        levels = self._levels
        resolved = topic_configs(self._metadata.image.configs.get((TOPIC_RESOURCE, topic), {}), levels)
        resolved[PRODUCER_ID_EXPIRATION_MS] = resolve_broker_config(PRODUCER_ID_EXPIRATION_MS, levels).value or ""
        return LogConfig.from_topic_configs(resolved)

    def min_insync_replicas(self, topic: str) -> int:
        return self._metadata.image.min_insync_replicas(topic)
