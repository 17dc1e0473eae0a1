"""Random histories of transactions: sound ones have nothing, and what is planted is found and proved."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from tanist.lab.history import Verdict
from tanist.lab.history.report import cited_operations
from tests.lab import transaction_worlds as worlds
from tests.lab.history_comparison import judged

Line = dict[str, Any]


def _judged(history: list[Line]) -> Verdict:
    return judged(enumerate(history, start=1))


def _require_proof(history: list[Line]) -> None:
    """Each anomaly is in its evidence alone; an allowed one may need the lines that allow it."""
    operations = dict(enumerate(history, start=1))
    verdict = _judged(history)
    for each in (*verdict.findings, *verdict.expected):
        evidence = json.loads(json.dumps(cited_operations(each, operations)))
        again = judged((number, line) for number, line in evidence)
        kinds = {one.anomaly for one in again.findings}
        if each in verdict.expected:
            kinds |= {one.anomaly for one in again.expected}
        assert each.anomaly in kinds, (each.summary, evidence)


@pytest.mark.parametrize("seeds", [range(150), pytest.param(range(150, 5000), marks=pytest.mark.slow)])
def test_nothing_is_found_in_a_sound_one(seeds: range) -> None:
    allowed: Counter[str] = Counter()
    for seed in seeds:
        history = worlds.world(seed)
        verdict = _judged(history)
        assert verdict.findings == (), (seed, [each.summary for each in verdict.findings])
        assert verdict.not_polled_at_the_end == {}, seed
        allowed.update(each.anomaly.value for each in verdict.expected)
        _require_proof(history)
    rare = {name: allowed[name] for name in _ALLOWED if allowed[name] < len(seeds) // 50}
    assert allowed.keys() == _ALLOWED
    assert not rare


_ALLOWED = {"G0", "G1c", "int-send-skip", "poll-skip", "nonmonotonic-poll"}


@pytest.mark.parametrize("plant", worlds.PLANTS)
def test_what_is_planted_is_found(plant: str) -> None:
    """Not in each history, for a plant may have no effect that a client could see; but in many."""
    hits: Counter[str] = Counter()
    for seed in range(60):
        history = worlds.world(seed, [plant])
        hits.update(each.anomaly.value for each in _judged(history).findings)
        _require_proof(history)
    missed = worlds.PLANTS[plant] - hits.keys()
    assert not missed, hits
    assert sum(hits[name] for name in worlds.PLANTS[plant]) >= 12, hits


def test_the_order_of_the_lines_of_different_processes_does_not_matter() -> None:
    """Files of several clients are put together as they are."""
    for seed in range(40):
        history = worlds.world(seed, random.Random(seed).sample(list(worlds.PLANTS), 2))
        by_process = sorted(history, key=lambda line: str(line["process"]))
        first, second = _judged(history), _judged(by_process)
        for one, other in ((first.findings, second.findings), (first.expected, second.expected)):
            assert {each.anomaly: each.count for each in one} == {each.anomaly: each.count for each in other}, seed
