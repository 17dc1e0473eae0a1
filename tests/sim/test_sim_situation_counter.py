"""Situations are counted by the events of nodes."""

from __future__ import annotations

from collections import Counter

from tanist.events.event import Reported
from tanist.sim.situations.counting import Situation, SituationCounter
from tanist.sim.world.world import World


def test_an_event_counts_where_its_condition_holds() -> None:
    counts: Counter[str] = Counter()
    warned = Situation("node: warned", "a line for the operator", Reported, lambda event: event.level == "WARN")
    said = Situation("node: said", "any line", Reported)
    world = World(1)
    counter = SituationCounter(counts, [warned, said])
    for level in ("INFO", "WARN", "INFO"):
        counter.observed(world.hosts[1], Reported(level, "text"))
    assert counts == {"node: warned": 1, "node: said": 3}
