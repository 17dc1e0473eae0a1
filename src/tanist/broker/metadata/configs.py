"""Configurations as they hold on this node: resolved from the committed metadata, the properties file and defaults.

`controller.configs.settings` has the order of the sources.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tanist.broker.metadata.view import MetadataView
from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.controller.configs.definitions import split_list
from tanist.controller.configs.settings import (
    PRODUCER_ID_EXPIRATION_MS,
    TOPIC_RESOURCE,
    Levels,
    own_of_listener,
    resolve_broker_config,
    resolve_topic_config,
    topic_configs,
)
from tanist.log.config import LogConfig
from tanist.security.connection_limits import Limits, ListenerLimits
from tanist.security.session import host_name


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

    def listener_setting(self, listener: str, name: str) -> Any:
        """A broker setting for one listener, parsed: `listener.name.NAME.` before it, or else the broker's."""
        for _, values in self._levels.in_order():
            own = own_of_listener(values, listener).get(name)
            if own is not None:
                return BROKER_SETTINGS[name].parse(own)
        return self.broker_setting(name)

    def connection_limits(self, listeners: Collection[str]) -> Limits:
        """How many connections these listeners may have, and how fast they may come."""
        overrides = split_list(self.broker_value("max.connections.per.ip.overrides") or "")
        return Limits(
            connections=self.broker_setting("max.connections"),
            creation_rate=self.broker_setting("max.connection.creation.rate"),
            listeners={
                each: ListenerLimits(
                    self.listener_setting(each, "max.connections"),
                    self.listener_setting(each, "max.connection.creation.rate"),
                )
                for each in listeners
            },
            per_host=self.broker_setting("max.connections.per.ip"),
            per_host_overrides={
                host_name(host.strip("[]")): int(count)
                for host, _, count in (each.rpartition(":") for each in overrides)
                if count.isdecimal()
            },
        )

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
