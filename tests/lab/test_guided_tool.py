"""`python -m tools.guided_draws`: the tables of guided and plain draws beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tanist.lab.simulation.guided import Guide
from tanist.lab.simulation.running import Terms
from tanist.sim.checkers.violation import Violation
from tanist.sim.run.chaos_run import SeedResult
from tools import guided_draws


@pytest.fixture(autouse=True)
def runs_that_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run reaches a state of its own, and a broken rule shows in the sixth."""

    def outcomes(
        guide: Guide, seeds: range, terms: Terms, jobs: int, in_time: Callable[[], bool]
    ) -> Iterator[SeedResult]:
        for number, seed in enumerate(seeds, 1):
            shows = terms.mutation is not None and number == 6
            outcome = SeedResult(seed, states={f"state {number}": 0}, events=100)
            outcome.violation = Violation("S4", 0, "broken") if shows else None
            guide.learn(guide.plan(), outcome)
            yield outcome

    monkeypatch.setattr(guided_draws, "outcomes", outcomes)


def test_the_curve_is_at_the_same_events() -> None:
    lines = list(guided_draws.curves(1, 16))
    assert lines[0] == "| Events | guided: runs | states | plain: runs | states |"
    assert lines[2] == "| 200 | 2 | 2 | 2 | 2 |"
    assert lines[-1] == "| 1,600 | 16 | 16 | 16 | 16 |"


def test_a_rule_is_found_or_not() -> None:
    assert list(guided_draws.rows(["A4"], 1, 10, 3))[2:] == [
        "| A4 | guided | 6, 6, 6 | 6 | 600 |",
        "| A4 | plain | 6, 6, 6 | 6 | 600 |",
    ]
    assert list(guided_draws.rows(["A4"], 1, 5, 2))[2] == "| A4 | guided | > 5, > 5 | not found | not found |"


def test_the_clusters_are_small() -> None:
    for seed in range(30):
        config = guided_draws.small(seed)
        assert len(config.roles) == 3
        assert config.nodes_with_conditions <= config.roles.keys()
        assert [topic.partitions for topic in config.topics] == [1]
