"""Compacted topics in the simulator: cleaned all the time under faults, judged as whole, and judged at all."""

from __future__ import annotations

import itertools

import pytest

from tanist.log.cleaner.cleaning import LogCleaning
from tanist.sim.run.chaos_run import ChaosRun, SeedResult
from tanist.sim.run.drawing import config_of
from tanist.sim.run.profiles import compacted_topics
from tanist.sim.world.clock import stream


def play(seed: int) -> tuple[SeedResult, int]:
    """A run with compacted topics, and how many cleanings there were in it."""
    cleanings = 0

    def trace(_us: int, _who: str, _level: str, message: str) -> None:
        nonlocal cleanings
        cleanings += "is compacted up to" in message

    config = compacted_topics(config_of(seed), stream(seed, "extras"))
    return ChaosRun(seed, config, trace=trace).run(), cleanings


@pytest.mark.parametrize("seed", [12, pytest.param(3, marks=pytest.mark.slow), pytest.param(9, marks=pytest.mark.slow)])
def test_nothing_is_lost_that_is_the_latest_of_its_key(seed: int) -> None:
    outcome, cleanings = play(seed)
    assert outcome.violation is None
    assert cleanings > 10
    assert outcome.acknowledged > 100


def drops_the_latest(patch: pytest.MonkeyPatch) -> None:
    real = LogCleaning._thinned
    count = itertools.count(1)

    def thinned(self: LogCleaning, header: object, batch: object, past: bool) -> object:
        return None if next(count) % 7 == 0 else real(self, header, batch, past)  # type: ignore[arg-type]

    patch.setattr(LogCleaning, "_thinned", thinned)


def test_a_cleaning_that_drops_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    drops_the_latest(monkeypatch)
    violation = play(1)[0].violation
    assert violation is not None
    assert violation.property_id in {"S18", "S21"}
