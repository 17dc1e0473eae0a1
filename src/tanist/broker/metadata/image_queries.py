"""The questions of consumer groups to this broker's metadata: topics, and the timing of a group's members."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.metadata.view import MetadataView
from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.controller.configs.definitions import split_list
from tanist.controller.configs.settings import (
    GROUP_RESOURCE,
    Levels,
    resolve_broker_config,
    resolve_group_config,
)
from tanist.coordinator.rebalance import ConsumerTiming, StreamsTiming


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


class GroupValues:
    """The configuration of groups: a GROUP resource's own within this broker's bounds, else the broker's."""

    def __init__(self, context: NodeContext, metadata: MetadataView) -> None:
        self._context = context
        self._metadata = metadata

    def has_own(self, group_id: str) -> bool:
        """Whether there is any for this group alone."""
        return bool(self._metadata.image.configs.get((GROUP_RESOURCE, group_id)))

    def text(self, group_id: str, name: str) -> str:
        own = self._metadata.image.configs.get((GROUP_RESOURCE, group_id)) or {}
        return resolve_group_config(name, own, self._levels()).value or ""

    def number(self, group_id: str, name: str) -> int:
        """Bounds may have changed since the group got its value. The broker's own value needs none."""
        own = self._metadata.image.configs.get((GROUP_RESOURCE, group_id)) or {}
        levels = self._levels()
        value = int(resolve_group_config(name, own, levels).value or 0)
        if name not in own:
            return value
        kind, _, rest = name.partition(".")
        rest = rest.removeprefix("num.")
        low, high = (f"group.{kind}.{end}.{rest}" for end in ("min", "max"))
        if low in BROKER_SETTINGS:
            value = max(value, int(resolve_broker_config(low, levels).value or 0))
        if high in BROKER_SETTINGS:
            value = min(value, int(resolve_broker_config(high, levels).value or 0))
        return value

    def _levels(self) -> Levels:
        return Levels.of(self._metadata.image.configs, self._context.node_id, self._context.config.static)


class TimingOfImage:
    """Timing of the members of a kind of groups (KIP-848, KIP-932); None of a group that has none of its own."""

    def __init__(self, values: GroupValues, kind: str) -> None:
        self._values = values
        self._kind = kind

    def __call__(self, group_id: str) -> ConsumerTiming | None:
        if not self._values.has_own(group_id):
            return None
        return ConsumerTiming(
            self._values.number(group_id, f"{self._kind}.session.timeout.ms"),
            self._values.number(group_id, f"{self._kind}.heartbeat.interval.ms"),
        )


def streams_timing(values: GroupValues, group_id: str) -> StreamsTiming:
    """The settings of a Streams group (KIP-1071)."""

    def number(name: str) -> int:
        return values.number(group_id, f"streams.{name}")

    return StreamsTiming(
        session_timeout_ms=number("session.timeout.ms"),
        heartbeat_interval_ms=number("heartbeat.interval.ms"),
        standby_replicas=number("num.standby.replicas"),
        initial_rebalance_delay_ms=number("initial.rebalance.delay.ms"),
        assignment_interval_ms=number("assignment.interval.ms"),
        acceptable_recovery_lag=number("acceptable.recovery.lag"),
        task_offset_interval_ms=number("task.offset.interval.ms"),
        rack_aware_assignment_tags=split_list(values.text(group_id, "streams.rack.aware.assignment.tags")),
    )
