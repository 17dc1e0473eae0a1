"""The context of a node: configuration and identity, the ports, the counters, the events.

A part gets by its constructor the context and the parts that it calls. Nothing here knows any part.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.broker.config import NodeConfig
from tanist.broker.counters import Metrics
from tanist.broker.logins import Logins
from tanist.broker.unexpected import OnCrash, OnMet, Unexpected
from tanist.controller.features import Bootstrap
from tanist.events.event import Event
from tanist.events.stream import Events, Recent
from tanist.events.text import describe
from tanist.ports import Clock, Disk, Network, Random
from tanist.text import timestamp_text

ReadUrl = Callable[[str], bytes]
"""What is at an http or https address; `OSError`. It is called off the loop."""


def no_url(url: str) -> bytes:
    """Of a node without the world behind its ports."""
    raise OSError(f"{url} cannot be read here")


class NodeContext:
    """One node's, in one life of its process."""

    __slots__ = (
        "_on_fatal",
        "bootstrap",
        "clock",
        "cluster_id",
        "config",
        "disk",
        "events",
        "logins",
        "metrics",
        "network",
        "node_id",
        "random",
        "read_url",
        "recent",
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
        events: Events,
        on_fatal: Callable[[str], None],
        on_crash: OnCrash | None = None,
        on_met: OnMet | None = None,
        read_url: ReadUrl = no_url,
        bootstrap: Bootstrap | None = None,
    ) -> None:
        """`on_crash` ends the process after an unexpected exception, `on_met` hears of each. `read_url` blocks.

        `bootstrap`: how a new cluster begins whose folders do not say it.
        """
        self.bootstrap = bootstrap
        self.config = config
        self.cluster_id = cluster_id
        self.node_id = config.node_id
        self.clock = clock
        self.disk = disk
        self.network = network
        self.random = random
        self.read_url = read_url
        self.events = events
        self.logins = Logins(config, clock, random, events)
        self.recent = Recent(clock.wall_ms)
        events.subscribe(self.recent)
        self.metrics = Metrics()
        events.subscribe(self.metrics.observe)
        self.stopping = False
        """The node goes down: nothing new is begun, and no request is sent again."""
        self._on_fatal = on_fatal
        self.unexpected = Unexpected(
            config.node_id, events, self.recent_events, on_crash or (lambda reason, _: on_fatal(reason)), on_met
        )

    def recent_events(self) -> list[str]:
        """The last thousand events, the oldest first, a line each: for a crash report."""
        lines = []
        for wall_ms, event in self.recent:
            line = describe(event)
            lines.append(f"{timestamp_text(wall_ms)} {' '.join(line) if line else event}")
        return lines

    def fatal(self, event: Event) -> None:
        """The node cannot go on: emit the reason, and end the process."""
        if not self.stopping:
            self.stopping = True
            self.events.emit(event)
            line = describe(event)
            self._on_fatal(type(event).__name__ if line is None else line[1])
