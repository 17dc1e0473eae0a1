"""The same seed gives the same bytes, whatever the interpreter's hashes and addresses are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tanist.sim.run.chaos_run import ChaosConfig, ChaosRun
from tanist.sim.run.config import GROUPS, SHARES, STREAMS, TRANSACTIONS
from tanist.sim.run.drawing import config_of
from tanist.sim.workload.operations import Topic
from tanist.sim.world.world import COMBINED

# Small, and with what makes use of sets and dicts: elections, snapshots, several clients, stops, operators.
_CONFIG = ChaosConfig(
    roles={**dict.fromkeys((1, 2, 3), COMBINED), 4: "broker"},
    topics=(Topic("events", 3, 3), Topic("orders", 1, 3, (("unclean.recovery.strategy", "Aggressive"),))),
    producers=1,
    careless_producers=1,
    fault_time_ms=4_000,
    fault_pause_ms=(50, 400),
    down_max=2,
    kinds=("crash", "partition", "reset", "stop", "crash-mid-turn", "power-loss"),
    operations=("reassign", "cancel", "min_isr", "strategy", "preferred", "unclean"),
    operation_pause_ms=(50, 500),
    may_lose=True,
    properties={
        "metadata.log.max.record.bytes.between.snapshots": "1500",
        "broker.session.timeout.ms": "3000",
        "unclean.recovery.manager.enabled": "true",
    },
)

_CHILD = """
import sys
sys.path.insert(0, {folder!r})
from tests.sim import test_sim_determinism
print(test_sim_determinism.{played})
"""


def play(seed: int) -> str:
    outcome = ChaosRun(seed, _CONFIG).run()
    assert outcome.violation is None, outcome.violation
    assert outcome.counts["elections"] > 2, "little happened"
    assert outcome.counts["reassignments begun"], "operators did little"
    return f"{outcome.digest} {outcome.events}"


def play_workload(seed: int, workload: str) -> str:
    outcome = ChaosRun(seed, config_of(seed, workload)).run()
    assert outcome.violation is None, outcome.violation
    return f"{outcome.digest} {outcome.events}"


def _children(played: str) -> list[subprocess.Popen[str]]:
    """Processes with other hashes, which play it too."""
    code = _CHILD.format(folder=str(Path(__file__).parents[2]), played=played)
    return [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "77777")
    ]


@pytest.mark.parametrize("seed", [6, 10])
def test_the_same_seed_gives_the_same_bytes_in_every_process(seed: int) -> None:
    children = _children(f"play({seed})")
    # Something in the way, so that addresses differ as well.
    ballast = [object() for _ in range(seed * 1000)]
    here = play(seed)
    assert [child.communicate()[0].strip() for child in children] == [here, here]
    assert ballast


@pytest.mark.parametrize(("seed", "workload"), [(1, GROUPS), (1, TRANSACTIONS), (1, STREAMS), (700008, SHARES)])
def test_so_does_each_workload(seed: int, workload: str) -> None:
    """700008 once sent the names of topics in the order of a set."""
    children = _children(f"play_workload({seed}, {workload!r})")
    here = play_workload(seed, workload)
    assert [child.communicate()[0].strip() for child in children] == [here, here]


def test_another_seed_gives_other_bytes() -> None:
    assert play(6) != play(10)
