"""Steps that change features and configurations, of any resource; and the random choice of such a step.

Owns the pools of names and values. Most values are valid, some are not, and some names are of no configuration. What is
set is of brokers, topics and groups that no other sequence uses, or is taken back at the sequence's end.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tanist.client.admin import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, UpgradeType
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_configs_request import AlterConfigsRequest
from tanist.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tests.interop.controllers.side import FEATURES, Features, Side

Answer = Mapping[str, object]
Resource = tuple[int, str]

CLIENT_METRICS_RESOURCE = 16
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
METADATA_VERSION = "metadata.version"
BASE_LEVELS: Mapping[str, int] = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 0,
    "streams.version": 0,
    "transaction.version": 0,
}
"""Every sequence starts with these."""


@dataclass(frozen=True, slots=True)
class UpdateFeatures:
    """Some features at once: name, level, the kind of the update."""

    updates: tuple[tuple[str, int, int], ...]
    validate_only: bool = False

    def act(self, side: Side) -> Answer:
        request = UpdateFeaturesRequest(
            feature_updates=tuple(
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
                for name, level, kind in self.updates
            ),
            validate_only=self.validate_only,
        )
        response: Any = side.ask(request)
        # Of several that are refused, Apache's controller names the first in the order of a hash map.
        message = response.error_message if len(self.updates) == 1 else None
        return {"error": ErrorCode.name_of(response.error_code), "message": message}


@dataclass(frozen=True, slots=True)
class Configure:
    """Some configurations of one resource: name, operation, value."""

    resource: Resource
    changes: tuple[tuple[str, int, str | None], ...]
    validate_only: bool = False

    def act(self, side: Side) -> Answer:
        kind, name = self.resource
        configs = tuple(
            AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in self.changes
        )
        request = IncrementalAlterConfigsRequest(
            resources=(AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs),),
            validate_only=self.validate_only,
        )
        return _judged(side.ask(request), len(self.changes))

    def names(self, side: Side) -> Collection[str]:
        """The configurations that this may write."""
        del side
        return () if self.validate_only else {name for name, *_ in self.changes}


@dataclass(frozen=True, slots=True)
class Replace:
    """AlterConfigs: exactly these configurations from now on."""

    resource: Resource
    values: tuple[tuple[str, str], ...]

    def act(self, side: Side) -> Answer:
        from tanist.wire.messages import alter_configs_request as messages

        kind, name = self.resource
        configs = tuple(messages.AlterableConfig(name=key, value=value) for key, value in self.values)
        resource = messages.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        return _judged(side.ask(AlterConfigsRequest(resources=(resource,))), len(self.values))

    def names(self, side: Side) -> Collection[str]:
        """What was set before is taken back."""
        return side.image.configs.get(self.resource, {}).keys() | {name for name, _ in self.values}


def _judged(response: Any, count: int) -> Answer:
    (answer,) = response.responses
    # Of several faults, Apache Kafka names the one that its definitions have first. About brokers, brokers speak, and
    # not their controller: `test_interop_configs` compares what they say.
    message = None if count > 1 or answer.resource_type == BROKER_RESOURCE else answer.error_message
    return {"error": ErrorCode.name_of(answer.error_code), "message": message}


# -- the pools

_TOPIC_VALUES: Mapping[str, Sequence[str]] = {
    "leader.replication.throttled.replicas": ("*", "0:1,1:2", "", "0", "nonsense"),
    "follower.replication.throttled.replicas": ("*", "0:3", "", "0:1:2"),
    "retention.ms": ("60000", "-1", "-2"),
    "segment.bytes": ("1048576", "2097152", "13", "x"),
    "cleanup.policy": ("compact", "delete", "compact,delete", "none"),
    "max.message.bytes": ("2000000", "-1"),
    "compression.type": ("zstd", "lz4", "rar"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime", "Sometime"),
    "flush.messages": ("1", "0"),
    "min.compaction.lag.ms": ("10", "9223372036854775807"),
    "max.compaction.lag.ms": ("100", "0"),
    "no.such.configuration": ("1",),
}
_BROKER_VALUES: Mapping[str, Sequence[str]] = {
    "leader.replication.throttled.rate": ("1000000", "1", "-1"),
    "follower.replication.throttled.rate": ("1000000", "1", "x"),
    "replica.alter.log.dirs.io.max.bytes.per.second": ("1000000",),
    "log.retention.ms": ("3600000", "-1"),
    "log.segment.bytes": ("1073741824", "1"),
    "log.cleanup.policy": ("compact", "delete"),
    "message.max.bytes": ("2000000",),
    "num.io.threads": ("9",),
    "max.connections.per.ip": ("100",),
    "log.cleaner.threads": ("2",),
    "node.id": ("1",),
    "some.plugins.configuration": ("anything",),
}
_GROUP_VALUES: Mapping[str, Sequence[str]] = {
    "consumer.session.timeout.ms": ("50000", "45000", "1", "3000"),
    "consumer.heartbeat.interval.ms": ("6000", "10000", "1"),
    "share.session.timeout.ms": ("50000", "1"),
    "share.heartbeat.interval.ms": ("7000", "x"),
    "share.record.lock.duration.ms": ("20000", "1"),
    "share.auto.offset.reset": ("earliest", "latest", "never"),
    "share.isolation.level": ("read_committed", "read_uncommitted"),
    "streams.session.timeout.ms": ("50000",),
    "streams.heartbeat.interval.ms": ("6000", "1"),
    "streams.num.standby.replicas": ("1", "9"),
    "group.no.such.configuration": ("1",),
}
_CLIENT_METRICS_VALUES: Mapping[str, Sequence[str]] = {
    "interval.ms": ("100", "60000", "1"),
    "metrics": ("org.apache.kafka.producer.", "*", ""),
    "match": ("client_id=orders", "client_software_name=apache.*", "no_such=1", "client_id"),
}
_VALUES: Mapping[int, Mapping[str, Sequence[str]]] = {
    TOPIC_RESOURCE: _TOPIC_VALUES,
    BROKER_RESOURCE: _BROKER_VALUES,
    GROUP_RESOURCE: _GROUP_VALUES,
    CLIENT_METRICS_RESOURCE: _CLIENT_METRICS_VALUES,
}


class SettingsChoices:
    """Steps about features and configurations, in one sequence. `name`: what its groups are named after."""

    def __init__(self, rng: random.Random, side: Side, name: str) -> None:
        self._rng = rng
        self._side = side
        self._name = name

    def features(self) -> UpdateFeatures:
        """One feature mostly, of one level up or down; sometimes several, or what does not exist."""
        count = self._rng.choice((1, 1, 1, 1, 2, 3))
        names = self._rng.sample((METADATA_VERSION, *BASE_LEVELS), count)
        if self._rng.random() < 0.05:
            names.append(self._rng.choice(("no.such.version", "kraft.version")))
        updates = tuple(self._update(name) for name in names)
        risky = any(name == METADATA_VERSION and level > 29 for name, level, _ in updates)
        return UpdateFeatures(updates, validate_only=risky or self._rng.random() < 0.2)

    def _update(self, name: str) -> tuple[str, int, int]:
        kinds = tuple(UpgradeType)
        current = self._side.image.features.get(name, 0)
        low, high = FEATURES.get(name, (0, 1))
        if name == METADATA_VERSION:
            # Below 4.0-IV1 there is no way back, and so there is none above 4.2.
            low = 23
        level = self._rng.randint(low, high)
        if self._rng.random() < 0.06:
            level = self._rng.choice((-1, low - 1, high + 1, 0))
        fitting = UpgradeType.UPGRADE if level >= current else self._rng.choice(kinds[1:])
        return name, level, fitting if self._rng.random() < 0.9 else self._rng.choice((*kinds, 0))

    def broker_features(self) -> Features:
        """What a broker says of itself: mostly all that Apache Kafka has, sometimes less."""
        if self._rng.random() < 0.85:
            return FEATURES
        name = self._rng.choice(tuple(BASE_LEVELS))
        if self._rng.random() < 0.3:
            return {**FEATURES, METADATA_VERSION: (7, self._rng.randint(24, 29))}
        if self._rng.random() < 0.5:
            return {each: levels for each, levels in FEATURES.items() if each != name}
        return {**FEATURES, name: (0, 0)}

    def configure(self, topics: Sequence[str], brokers: Sequence[int]) -> Configure | Replace:
        resource = self._resource(topics, brokers)
        values = _VALUES[resource[0]]
        names = self._rng.sample(tuple(values), self._rng.choice((1, 1, 1, 2, 3)))
        if resource[0] != BROKER_RESOURCE and self._rng.random() < 0.15:
            return Replace(resource, tuple((name, self._value(values[name])) for name in names))
        return Configure(
            resource, tuple(self._change(name, values[name]) for name in names), validate_only=self._rng.random() < 0.1
        )

    def _resource(self, topics: Sequence[str], brokers: Sequence[int]) -> Resource:
        (kind,) = self._rng.choices(tuple(_VALUES), (5, 4, 4, 2))
        if kind == TOPIC_RESOURCE:
            return kind, self._rng.choice(topics)
        if kind == BROKER_RESOURCE:
            return kind, "" if self._rng.random() < 0.3 else str(self._rng.choice(brokers))
        return kind, "" if self._rng.random() < 0.03 else f"{self._name}-{self._rng.randint(1, 2)}"

    def _change(self, name: str, values: Sequence[str]) -> tuple[str, int, str | None]:
        operation = self._rng.choices((SET, DELETE, APPEND, SUBTRACT), (70, 20, 5, 5))[0]
        return name, operation, None if operation == DELETE else self._value(values)

    def _value(self, values: Sequence[str]) -> str:
        """The first ones more often: they are those that are valid."""
        return values[min(self._rng.randrange(len(values)), self._rng.randrange(len(values)))]


def resets(side: Side, metadata_version: int) -> Iterator[UpdateFeatures]:
    """What brings a side's features back to where every sequence starts."""
    for name, level in {METADATA_VERSION: metadata_version, **BASE_LEVELS}.items():
        current = side.image.features.get(name, 0)
        if current != level:
            kind = UpgradeType.UPGRADE if current < level else UpgradeType.SAFE_DOWNGRADE
            yield UpdateFeatures(((name, level, kind),))
