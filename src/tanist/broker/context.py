"""The context of a node: configuration and identity, the ports, the counters, the reports to the operator.

A part gets by its constructor the context and the parts that it calls. Nothing here knows any part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from tanist.broker.config import NodeConfig
from tanist.broker.counters import Metrics
from tanist.broker.unexpected import OnCrash, OnMet, Unexpected
from tanist.log.salvage.manifest import timestamp_text
from tanist.ports import Clock, Disk, Network, Random

Report = Callable[[str, str], None]
"""(level, message): INFO, WARN, ERROR; for the operator to read."""

_RECENT_MAX: Final = 1000


class NodeContext:
    """One node's, in one life of its process."""

    __slots__ = (
        "_on_fatal",
        "_recent",
        "_report",
        "clock",
        "cluster_id",
        "config",
        "disk",
        "metrics",
        "network",
        "node_id",
        "random",
        "stopping",
        "unexpected",
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
        on_crash: OnCrash | None = None,
        on_met: OnMet | None = None,
    ) -> None:
        """`on_crash` ends the process after an unexpected exception, `on_met` hears of each."""
        self.config = config
        self.cluster_id = cluster_id
        self.node_id = config.node_id
        self.clock = clock
        self.disk = disk
        self.network = network
        self.random = random
        self._report = report
        self._recent: deque[tuple[int, str, str]] = deque(maxlen=_RECENT_MAX)
        self.metrics = Metrics()
        self.stopping = False
        """The node goes down: nothing new is begun, and no request is sent again."""
        self._on_fatal = on_fatal
        self.unexpected = Unexpected(
            config.node_id, self.report, self.recent_events, on_crash or (lambda reason, _: on_fatal(reason)), on_met
        )

    def report(self, level: str, message: str) -> None:
        """Tell the operator."""
        self._recent.append((self.clock.wall_ms(), level, message))
        self._report(level, message)

    def recent_events(self) -> list[str]:
        """The last thousand events, the oldest first, for a crash report."""
        return [f"{timestamp_text(wall_ms)} {level} {message}" for wall_ms, level, message in self._recent]

    def fatal(self, reason: str) -> None:
        """The node cannot go on: report the reason, and end the process."""
        if not self.stopping:
            self.stopping = True
            self.report("ERROR", reason)
            self._on_fatal(reason)
