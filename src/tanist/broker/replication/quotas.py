"""Quotas of replication: how fast replicas that catch up may fetch, and be served (KIP-73).

Owns the two rates of this broker, `leader.` and `follower.replication.throttled.rate`, the replicas that the topics
name for them, and the bytes of the last seconds. A quota holds for replicas that are not in sync only: one that is in
sync is never slowed down. As in Kafka a quota is exceeded after the fact, so a large fetch is followed by a pause.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tanist.broker.context import NodeContext
from tanist.broker.metadata.configs import ResolvedConfigs
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.configs.definitions import split_list
from tanist.events.replication import ReplicationThrottled

WINDOW_MS: Final = 1_000
WINDOWS: Final = 10
"""The rate is that of so many whole seconds, and of the one that has begun: Kafka's default."""
MOVES_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
PAUSE_MS: Final = 100
"""How long a follower waits before it looks again whether its quota is exceeded."""


class Quota:
    """One direction. `active` is false without a rate, and then nothing else is to be asked."""

    __slots__ = (
        "_clock",
        "_configs",
        "_events",
        "_node_id",
        "_rate",
        "_samples",
        "_setting",
        "_side",
        "_throttled",
        "_total",
        "active",
    )

    def __init__(self, context: NodeContext, configs: ResolvedConfigs, side: str, rate: str | None = None) -> None:
        """`side`: leader or follower, with its own setting for the rate unless that is given."""
        self._clock = context.clock
        self._events = context.events
        self._configs = configs
        self._node_id = context.node_id
        self._side = side
        self._setting = rate or f"{side}.replication.throttled.rate"
        self._rate = 0
        self._samples: deque[tuple[int, int]] = deque()
        """(beginning of its second, bytes)."""
        self._total = 0
        self._throttled: dict[str, frozenset[int] | None] = {}
        """By topic: the partitions of this broker's replicas; None stands for all."""
        self.active = False

    def configs_changed(self) -> None:
        rate = self._configs.broker_setting(self._setting)
        self.active = rate is not None
        self._rate = 0 if rate is None else int(rate)
        self._throttled.clear()
        if not self.active:
            self._samples.clear()
            self._total = 0

    def holds_for(self, hosted: HostedPartition, replica_id: int) -> bool:
        """Whether the fetches of the partition by this replica count: it is named, and not in sync."""
        metadata = hosted.replica.metadata
        if metadata is not None and replica_id in metadata.isr:
            return False
        topic = hosted.topic
        if topic not in self._throttled:
            self._throttled[topic] = self._named(topic)
        named = self._throttled[topic]
        return named is None or hosted.index in named

    def record(self, size_bytes: int) -> None:
        begun_ms = self._clock.now_ms() // WINDOW_MS * WINDOW_MS
        if self._samples and self._samples[-1][0] == begun_ms:
            self._samples[-1] = (begun_ms, self._samples[-1][1] + size_bytes)
        else:
            self._samples.append((begun_ms, size_bytes))
        self._total += size_bytes
        if self._events.fine and self.exceeded:
            self._events.emit(ReplicationThrottled(self._side))

    @property
    def exceeded(self) -> bool:
        now_ms = self._clock.now_ms()
        oldest_ms = now_ms // WINDOW_MS * WINDOW_MS - WINDOWS * WINDOW_MS
        while self._samples and self._samples[0][0] < oldest_ms:
            self._total -= self._samples.popleft()[1]
        elapsed_ms = WINDOWS * WINDOW_MS + now_ms % WINDOW_MS
        return self._total * 1_000 > self._rate * elapsed_ms

    def _named(self, topic: str) -> frozenset[int] | None:
        value = self._configs.topic_value(f"{self._side}.replication.throttled.replicas", topic) or ""
        if value.strip() == "*":
            return None
        pairs = (each.split(":") for each in split_list(value))
        return frozenset(int(index) for index, broker in pairs if int(broker) == self._node_id)


class ReplicationQuotas:
    """Both directions of a broker, and its moves from one log directory to another (KIP-113)."""

    def __init__(self, context: NodeContext, configs: ResolvedConfigs) -> None:
        self.leader = Quota(context, configs, "leader")
        self.follower = Quota(context, configs, "follower")
        self.moves = Quota(context, configs, "mover", MOVES_RATE)

    def configs_changed(self) -> None:
        self.leader.configs_changed()
        self.follower.configs_changed()
        self.moves.configs_changed()
