"""Throttled reassignments in the simulator: drawn for a share of the seeds, slower than others, and they end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tanist.sim.run.additions import THROTTLES_SHARE
from tanist.sim.run.chaos_run import ChaosRun, SeedResult
from tanist.sim.run.config import ChaosConfig
from tanist.sim.run.drawing import config_of, operations_of
from tanist.sim.workload.operations import THROTTLE_OPERATIONS, Admin, Operation, Topic
from tanist.sim.world.world import COMBINED

CONFIG = ChaosConfig(
    roles={**dict.fromkeys((1, 2, 3), COMBINED), 4: "broker"},
    topics=(Topic("events", 1, 2),),
    min_insync_replicas=1,
    kinds=(),
    pause_ms=20,
    fault_time_ms=4_000,
    settle_time_ms=180_000,
    throttle_bytes=500,
)
MOVE = Operation(3_500_000, "throttled_move", 0.5, 0.5)


def test_a_share_of_the_seeds_draws_them() -> None:
    drawn = [config_of(seed) for seed in range(600)]
    throttled = [config for config in drawn if config.throttle_operations]
    assert abs(len(throttled) - THROTTLES_SHARE * 600) < 30
    assert all(config.throttle_bytes > 0 and config.settle_time_ms > 60_000 for config in throttled)
    assert all(config.throttle_bytes == 0 for config in drawn if not config.throttle_operations)
    assert all(hasattr(Admin, f"_{kind}") for kind in THROTTLE_OPERATIONS)


def test_the_others_draw_the_same_operations_with_them() -> None:
    seed = next(seed for seed in range(100) if config_of(seed).throttle_operations)
    config = config_of(seed)
    without = operations_of(seed, replace(config, throttle_operations=()))
    with_them = operations_of(seed, config)
    assert [each for each in with_them if each.kind not in THROTTLE_OPERATIONS] == without
    assert len(with_them) > len(without)


def played(*operations: Operation, seed: int = 4) -> SeedResult:
    outcome = ChaosRun(seed, CONFIG, faults=[], operations=list(operations)).run()
    assert outcome.violation is None, outcome.violation
    return outcome


@pytest.mark.parametrize("choice", [0.0, 0.9], ids=["all replicas", "named replicas"])
def test_a_throttled_reassignment_takes_its_time_and_ends(choice: float) -> None:
    plain = played(replace(MOVE, kind="reassign"))
    slow = played(replace(MOVE, second=choice))
    assert plain.counts["reassignments completed"] == slow.counts["reassignments completed"] == 1
    assert slow.counts["leader: throttled, its rate is exceeded"] > 0
    assert slow.counts["follower: throttled, its rate is exceeded"] > 0
    assert slow.virtual_ms > plain.virtual_ms + 8_000


def test_without_the_throttle_it_goes_on_fast() -> None:
    slow, freed = played(MOVE), played(MOVE, Operation(3_800_000, "unthrottle", 0.5, 0.5))
    assert freed.counts["reassignments completed"] == 1
    assert freed.virtual_ms < slow.virtual_ms - 5_000
