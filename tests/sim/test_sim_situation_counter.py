"""Situations are counted by the events of nodes."""

from __future__ import annotations

from collections import Counter

from tanist.events.process import SignalReceived
from tanist.sim.situations.counting import Situation, SituationCounter
from tanist.sim.world.world import World


def test_an_event_counts_where_its_condition_holds() -> None:
    counts: Counter[str] = Counter()
    twice = Situation("node: signalled twice", "it ends at once", SignalReceived, lambda event: event.again)
    once = Situation("node: signalled", "any signal", SignalReceived)
    world = World(1)
    counter = SituationCounter(counts, [twice, once])
    for again in (False, True, False):
        counter.observed(world.hosts[1], SignalReceived("SIGTERM", again))
    assert counts == {"node: signalled twice": 1, "node: signalled": 3}
