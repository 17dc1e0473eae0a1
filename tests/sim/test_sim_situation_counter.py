"""Situations are counted by the events of nodes."""

from __future__ import annotations

from collections import Counter

import pytest

from tanist.events.process import SignalReceived
from tanist.sim.situations import SituationCounter, on
from tanist.sim.world.world import World


def test_an_event_counts_where_its_condition_holds() -> None:
    counts: Counter[str] = Counter()
    situations = {
        "node: signalled twice": on(SignalReceived, "it ends at once", again=True),
        "node: signalled to end": on(SignalReceived, "by its name", lambda event: event.signal == "SIGTERM"),
        "node: both": on(SignalReceived, "all conditions count", lambda event: event.signal == "SIGINT", again=True),
        "node: signalled": on(SignalReceived, "any signal"),
    }
    world = World(1)
    counter = SituationCounter(counts, situations)
    for again in (False, True, False):
        counter.observed(world.hosts[1], SignalReceived("SIGTERM", again))
    assert counts == {"node: signalled twice": 1, "node: signalled to end": 3, "node: signalled": 3}


def test_a_condition_on_a_field_that_is_none_is_no_situation() -> None:
    with pytest.raises(ValueError, match="SignalReceived has the fields"):
        on(SignalReceived, "a misspelt field", agian=True)
