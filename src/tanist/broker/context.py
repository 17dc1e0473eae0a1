"""The context of a node: configuration and identity, the ports, the counters, the events.

A part gets by its constructor the context and the parts that it calls. Nothing here knows any part.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.broker.config import NodeConfig
from tanist.broker.counters import Metrics
from tanist.events.event import Reported
from tanist.events.stream import Events, Recent
from tanist.ports import Clock, Disk, Network, Random


class NodeContext:
    """One node's, in one life of its process."""

    __slots__ = (
        "_on_fatal",
        "clock",
        "cluster_id",
        "config",
        "disk",
        "events",
        "metrics",
        "network",
        "node_id",
        "random",
        "recent",
        "stopping",
    )

    def __init__(
        self,
        config: NodeConfig,
        cluster_id: str,
        clock: Clock,
        disk: Disk,
        network: Network,
        random: Random,
        events: Events,
        on_fatal: Callable[[str], None],
    ) -> None:
        self.config = config
        self.cluster_id = cluster_id
        self.node_id = config.node_id
        self.clock = clock
        self.disk = disk
        self.network = network
        self.random = random
        self.events = events
        self.recent = Recent(clock.wall_ms)
        events.subscribe(self.recent)
        self.metrics = Metrics()
        self.stopping = False
        """The node goes down: nothing new is begun, and no request is sent again."""
        self._on_fatal = on_fatal

    def report(self, level: str, text: str) -> None:
        """A line for the operator that has no event of its own yet."""
        self.events.emit(Reported(level, text))

    def fatal(self, reason: str) -> None:
        """The node cannot go on: report the reason, and end the process."""
        if not self.stopping:
            self.stopping = True
            self.report("ERROR", reason)
            self._on_fatal(reason)
