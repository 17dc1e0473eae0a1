"""The cluster under faults in virtual time: safety after every turn, whole again when they end.

200 seeds are the test's size; the default run takes a part of them. `TANIST_SEEDS=A..B` plays another range. A failure
names its seed, and the same seed fails again, byte for byte: `python -m tanist.sim SEED --trace`.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from tanist.sim.chaos import Outcome, run

_DEFAULT = "1..28"
_REST = "29..200"


def _play(seeds: str) -> list[Outcome]:
    first, last = os.environ.get("TANIST_SEEDS", seeds).split("..")
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(run, range(int(first), int(last) + 1)))


def _judge(outcomes: list[Outcome]) -> None:
    violations = [f"seed {outcome.seed}: {outcome.violation}" for outcome in outcomes if outcome.violation]
    assert not violations, "\n".join(violations)
    # A run in which nothing happens proves nothing.
    assert all(outcome.acknowledged > 0 and outcome.reads > 0 for outcome in outcomes)
    assert sum(outcome.acknowledged for outcome in outcomes) > 300 * len(outcomes)
    assert sum(outcome.faults for outcome in outcomes) > 4 * len(outcomes)
    assert sum(outcome.checks for outcome in outcomes) > 1000 * len(outcomes)


def test_a_cluster_under_faults_keeps_what_it_acknowledged() -> None:
    _judge(_play(_DEFAULT))


@pytest.mark.slow
def test_the_rest_of_200_seeds() -> None:
    _judge(_play(_REST))
