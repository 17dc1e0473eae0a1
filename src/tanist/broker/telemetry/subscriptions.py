"""The cluster's client metrics subscriptions, and what they ask of one client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from tanist.broker.metadata.view import MetadataView
from tanist.controller.configs.catalogue import CLIENT_METRICS_SETTINGS
from tanist.controller.configs.client_patterns import client_patterns
from tanist.controller.configs.definitions import InvalidConfig, split_list
from tanist.controller.configs.settings import CLIENT_METRICS_RESOURCE
from tanist.controller.image.delta import ImageDelta
from tanist.wire.crc import crc32c

ALL = "*"
_DEFAULTS = {name: setting.default or "" for name, setting in CLIENT_METRICS_SETTINGS.items()}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one client is to push, and how often."""

    subscription_id: int
    metrics: tuple[str, ...]
    """Prefixes of names; `ALL` is all of them, and no prefix none."""
    interval_ms: int


@dataclass(frozen=True, slots=True)
class _Subscription:
    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, re.Pattern[str]]

    def is_for(self, attributes: Mapping[str, str]) -> bool:
        return all(
            name in attributes and pattern.fullmatch(attributes[name]) is not None
            for name, pattern in self.patterns.items()
        )


class Subscriptions:
    """Those of the metadata image."""

    def __init__(self, metadata: MetadataView) -> None:
        self._metadata = metadata
        self._all = self._read()
        self.version = 0
        """Grows when one changes."""
        metadata.on_change(self._metadata_changed)

    def of_client(self, instance_id: UUID, attributes: Mapping[str, str]) -> Wanted:
        """What the subscriptions for this client ask together: all their metrics, at the shortest interval."""
        found = [each for each in self._all if each.is_for(attributes)]
        metrics = {metric for each in found for metric in each.metrics}
        ordered = (ALL,) if ALL in metrics else tuple(sorted(metrics))
        interval_ms = min([int(_DEFAULTS["interval.ms"]), *(each.interval_ms for each in found)])
        return Wanted(_subscription_id(instance_id, ordered, interval_ms), ordered, interval_ms)

    def _metadata_changed(self, delta: ImageDelta) -> None:
        if any(kind == CLIENT_METRICS_RESOURCE for kind, _ in delta.configs):
            self._all = self._read()
            self.version += 1

    def _read(self) -> list[_Subscription]:
        configs = self._metadata.image.configs
        found = []
        for kind, name in configs:
            own = {**_DEFAULTS, **configs[kind, name]}
            if kind != CLIENT_METRICS_RESOURCE or not configs[kind, name]:
                continue
            try:
                patterns = client_patterns(own["match"])
            except InvalidConfig:
                continue  # a controller of Apache Kafka's has taken an expression that only Java knows
            found.append(_Subscription(split_list(own["metrics"]), int(own["interval.ms"]), patterns))
        return found


def _subscription_id(instance_id: UUID, metrics: tuple[str, ...], interval_ms: int) -> int:
    """Another one for each client and for what is asked of it, and the same one on each broker."""
    asked = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    for start in range(0, 16, 4):
        asked ^= int.from_bytes(instance_id.bytes[start : start + 4], "big")
    return asked - (1 << 32) if asked >> 31 else asked
