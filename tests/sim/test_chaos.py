"""The cluster under faults in virtual time: safety after every turn, whole again when they end.

200 seeds are the test's size; the default run takes a part of them (`TANIST_SEEDS=A..B` sets another range). A failure
names its seed, and the same seed fails again, byte for byte.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from tanist.replica.leader import LeaderState
from tanist.sim.chaos import ChaosConfig, Outcome, run

_DEFAULT = "1..30"
_FULL = "1..200"


def _seeds(default: str) -> range:
    first, last = os.environ.get("TANIST_SEEDS", default).split("..")
    return range(int(first), int(last) + 1)


def _run_all(seeds: range) -> list[Outcome]:
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(run, seeds))


def _judge(outcomes: list[Outcome]) -> None:
    violations = [f"seed {outcome.seed}: {outcome.violation}" for outcome in outcomes if outcome.violation]
    assert not violations, "\n".join(violations)
    # A run in which nothing happens proves nothing.
    assert sum(outcome.acknowledged for outcome in outcomes) > 50 * len(outcomes)
    assert sum(outcome.faults for outcome in outcomes) > 2 * len(outcomes)


def test_a_cluster_under_faults_keeps_what_it_acknowledged() -> None:
    _judge(_run_all(_seeds(_DEFAULT)))


@pytest.mark.slow
def test_200_seeds() -> None:
    _judge(_run_all(_seeds(_FULL)))


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, second = run(4), run(4)
    assert first.digest == second.digest
    assert run(5).digest != first.digest


def test_a_broken_high_watermark_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A1: the high watermark moves although the committed ISR is too small."""
    monkeypatch.setattr(LeaderState, "_may_advance", lambda self: True)
    config = ChaosConfig(faults=("kill", "partition"), fault_time_ms=8_000)
    for seed in range(1, 20):
        violation = run(seed, config).violation
        if violation is not None:
            assert violation.property_id in ("S1", "S4"), violation
            return
    pytest.fail("19 seeds did not notice that the high watermark ignores min.insync.replicas")
