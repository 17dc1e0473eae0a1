"""The checker against brute force: the same anomalies, as often, in the same partitions, in thousands of histories.

And against the truth: of worlds without plants nothing may be found. And against itself: the evidence alone, as a
history of its own, has the anomaly that it is evidence of.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from tests.lab import history_worlds as worlds
from tests.lab.brute_history import count

from tanist.lab.history import Anomaly, Checker, Verdict
from tanist.lab.history.report import evidence_of

Line = dict[str, Any]
MAKERS = (worlds.world, worlds.planted, worlds.planted, worlds.soup, worlds.soup)


def _judged(numbered: Iterable[tuple[int, Line]]) -> Verdict:
    checker = Checker()
    for number, line in numbered:
        checker.take(number, line)
    return checker.verdict()


def _counts(verdict: Verdict) -> dict[tuple[str, str], int]:
    return {(found.anomaly.value, name): number for found in verdict.found for name, number in found.partitions.items()}


def _compare(seeds: range) -> None:
    met: Counter[str] = Counter()
    sound = 0
    for seed in seeds:
        make = MAKERS[seed % len(MAKERS)]
        history = make(seed)
        operations = dict(enumerate(history, start=1))
        verdict = _judged(operations.items())
        assert _counts(verdict) == count(history), (make.__name__, seed)
        if make is worlds.world:
            assert verdict.found == (), (make.__name__, seed)
            sound += 1
        met.update(found.anomaly.value for found in verdict.found)
        for found in verdict.found:
            evidence = json.loads(json.dumps(evidence_of(found, operations)))
            again = _judged((number, line) for number, line in evidence)
            assert found.anomaly in {each.anomaly for each in again.found}, (make.__name__, seed, evidence)
    assert sound >= len(seeds) // len(MAKERS)
    rare = {anomaly.value: met[anomaly.value] for anomaly in Anomaly if met[anomaly.value] < len(seeds) // 50}
    assert not rare, "each kind must be met often, or nothing is known of it"


def test_as_brute_force_says() -> None:
    _compare(range(500))


@pytest.mark.slow
def test_as_brute_force_says_of_ten_thousand() -> None:
    _compare(range(500, 10_500))


@pytest.mark.parametrize("plant", worlds.PLANTS)
def test_what_is_planted_is_found(plant: str) -> None:
    """Not in each history, for a plant may have no effect that a client could see; but in many."""
    hits = sum(bool(_judged(enumerate(worlds.world(seed, [plant]), start=1)).found) for seed in range(100))
    assert hits >= 5
