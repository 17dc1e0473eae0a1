"""What is seen of a run: the events of its nodes, and where their lives end.

Owns the order of observations: that of time, and in it of turns. It judges and translates nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tanist.events.event import Event
from tanist.events.process import NodeStarted, ShutdownDone
from tanist.sim import events as sim_events
from tanist.sim.world.world import Host, Watcher, World


@dataclass(frozen=True, slots=True)
class LifeEnded:
    """The process of a node has ended."""

    clean: bool
    """Its logs were closed, and the next life will say so."""
    lost_power: bool = False
    """With its machine: what was not synced is gone."""


@dataclass(frozen=True, slots=True)
class ElectionRequested:
    """An operator has asked for elections by the longest log, whatever is configured."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Something of a node."""

    at_us: int
    node_id: int
    event: object
    """An `Event`, `LifeEnded` or `ElectionRequested`."""


class Recorder(Watcher):
    """Records the nodes that start from now on."""

    def __init__(self, world: World) -> None:
        self.all: list[Observed] = []
        self._world = world
        world.fine = True
        world.watchers.insert(0, self)

    def observed(self, host: Host, event: Event) -> None:
        self.all.append(Observed(self._world.now_us, host.node_id, event))

    def went_down(self, host: Host, *, lost_power: bool, mid_turn: bool) -> None:
        self.all.append(
            Observed(self._world.now_us, host.node_id, LifeEnded(host.lives in host.clean_ends, lost_power))
        )

    def happened(self, event: sim_events.Event) -> None:
        if isinstance(event, sim_events.UncleanElectionRequested):
            self.all.append(Observed(self._world.now_us, 0, ElectionRequested()))


def of_processes(events: Iterable[tuple[int, int, Event]]) -> Iterator[Observed]:
    """The observations of (milliseconds, node, event), as `tanist events --json` has them, in order of time.

    Whether a process that was killed has lost its page cache no event tells: its next life tells where its log ends.
    """
    clean: dict[int, bool] = {}
    """Of each life: events come before it listens, and after it has said that it is done."""
    for wall_ms, node_id, event in events:
        if isinstance(event, NodeStarted):
            if node_id in clean:
                yield Observed(wall_ms * 1000, node_id, LifeEnded(clean[node_id], lost_power=not clean[node_id]))
            clean[node_id] = False
        elif isinstance(event, ShutdownDone):
            clean[node_id] = True
        yield Observed(wall_ms * 1000, node_id, event)
