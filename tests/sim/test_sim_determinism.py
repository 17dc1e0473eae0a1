"""The same seed gives the same bytes, whatever the interpreter's hashes and addresses are."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tanist.sim.chaos import ChaosConfig, Run

# Small, and with what makes use of sets and dicts: elections, snapshots, several clients, stops.
_CONFIG = ChaosConfig(
    partitions=3,
    careless_producers=1,
    fault_time_ms=4_000,
    fault_pause_ms=(100, 600),
    kinds=("kill", "partition", "reset", "stop", "crash"),
    properties={"metadata.log.max.record.bytes.between.snapshots": "1500", "broker.session.timeout.ms": "3000"},
)

_CHILD = """
import sys
sys.path.insert(0, {folder!r})
import test_sim_determinism
print(test_sim_determinism.play({seed}))
"""


def play(seed: int) -> str:
    outcome = Run(seed, _CONFIG).run()
    assert outcome.violation is None, outcome.violation
    return f"{outcome.digest} {outcome.events}"


@pytest.mark.parametrize("seed", [2, 6])
def test_the_same_seed_gives_the_same_bytes_in_every_process(seed: int) -> None:
    code = _CHILD.format(folder=os.path.dirname(__file__), seed=seed)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "77777")
    ]
    # Something in the way, so that addresses differ as well.
    ballast = [object() for _ in range(seed * 1000)]
    here = play(seed)
    assert [child.communicate()[0].strip() for child in children] == [here, here]
    assert ballast


def test_another_seed_gives_other_bytes() -> None:
    assert play(2) != play(7)
