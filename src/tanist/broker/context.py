"""The context of a node: configuration and identity, the ports, the counters, the reports to the operator.

A part gets by its constructor the context and the parts that it calls. Nothing here knows any part.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.broker.config import NodeConfig
from tanist.broker.counters import Metrics
from tanist.ports import Clock, Disk, Network, Random

Report = Callable[[str, str], None]
"""(level, message): INFO, WARN, ERROR; for the operator to read."""


class NodeContext:
    """One node's, in one life of its process."""

    __slots__ = (
        "_on_fatal",
        "clock",
        "cluster_id",
        "config",
        "disk",
        "metrics",
        "network",
        "node_id",
        "random",
        "report",
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
        report: Report,
        on_fatal: Callable[[str], None],
    ) -> None:
        self.config = config
        self.cluster_id = cluster_id
        self.node_id = config.node_id
        self.clock = clock
        self.disk = disk
        self.network = network
        self.random = random
        self.report = report
        self.metrics = Metrics()
        self.stopping = False
        """The node goes down: nothing new is begun, and no request is sent again."""
        self._on_fatal = on_fatal

    def fatal(self, reason: str) -> None:
        """The node cannot go on: report the reason, and end the process."""
        if not self.stopping:
            self.stopping = True
            self.report("ERROR", reason)
            self._on_fatal(reason)
