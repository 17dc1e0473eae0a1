"""The cluster under faults and operators in virtual time: safety after every turn, whole again when they end.

2,000 seeds are the test's size; the default run takes a part of them. `TANIST_SEEDS=A..B` plays another range. A
failure names its seed, and the same seed fails again, byte for byte: `tanist lab run --seeds SEED --trace`.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import pytest

from tanist.sim.run.chaos_run import SeedResult, run
from tanist.sim.run.coverage import lacking

_DEFAULT = "1..20"
_REST = "21..2000"


def _play(seeds: str) -> list[SeedResult]:
    first, last = os.environ.get("TANIST_SEEDS", seeds).split("..")
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(run, range(int(first), int(last) + 1)))


def _judge(outcomes: list[SeedResult]) -> None:
    violations = [f"seed {outcome.seed}: {outcome.violation}" for outcome in outcomes if outcome.violation]
    assert not violations, "\n".join(violations)
    # A run in which nothing happens proves nothing.
    assert all(outcome.acknowledged > 0 and outcome.reads > 0 for outcome in outcomes)
    assert sum(outcome.counts["elections"] for outcome in outcomes) > 2 * len(outcomes)
    assert sum(outcome.acknowledged for outcome in outcomes) > 300 * len(outcomes)
    assert sum(outcome.faults for outcome in outcomes) > 4 * len(outcomes)
    assert sum(outcome.checks for outcome in outcomes) > 1000 * len(outcomes)


@pytest.mark.long
def test_a_cluster_under_faults_keeps_what_it_acknowledged() -> None:
    _judge(_play(_DEFAULT))


@pytest.mark.slow
def test_the_rest_of_2000_seeds() -> None:
    outcomes = _play(_REST)
    _judge(outcomes)
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.counts)
    assert not lacking(counts), counts
