"""Situations: moments in which a rule of the protocol decides, counted by name.

A range of seeds without a situation proves nothing about its rule. A situation is a kind of event and a condition on
its fields; one watcher of the world counts all of them. It changes nothing: the same seed gives the same bytes with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tanist.events.event import Event
from tanist.sim.world.world import Host, Watcher


class Situation(NamedTuple):
    """One of them. `holds` looks at an event of its kind."""

    name: str
    meaning: str
    kind: type[Event]
    holds: Callable[[Any], bool] = lambda event: True


class SituationCounter(Watcher):
    """Counts the situations of a run. The world's nodes must start with `World.fine` set."""

    def __init__(self, counts: Counter[str], situations: Iterable[Situation]) -> None:
        self._counts = counts
        self._by_kind: dict[type[Event], list[Situation]] = {}
        for each in situations:
            self._by_kind.setdefault(each.kind, []).append(each)

    def observed(self, host: Host, event: Event) -> None:
        for situation in self._by_kind.get(type(event), ()):
            if situation.holds(event):
                self._counts[situation.name] += 1
