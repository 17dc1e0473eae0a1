"""Logs that go while their broker is down: it is eligible for nothing then, and what others have stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tanist.broker.log_directories import LogDirectories
from tanist.sim.faults.schedule import Fault
from tanist.sim.run.chaos_run import ChaosConfig, ChaosRun, SeedResult

SEED = 5


def play(directories: int = 1, detail: float = 0.9) -> SeedResult:
    """A log of one node after the other is gone when it starts."""
    faults = [
        Fault(
            700_000 * n, "lost-log", 1 + n % 3, 1 + (n + 1) % 3, 400_000, (detail + 0.13 * n) % 0.5 + detail // 0.5 / 2
        )
        for n in range(2, 14)
    ]
    return ChaosRun(SEED, replace(ChaosConfig(), directories=directories), faults=faults).run()


def test_a_log_that_is_removed_behind_a_clean_stop_costs_nothing_that_others_have() -> None:
    outcome = play()
    assert outcome.violation is None
    assert outcome.counts["folders of logs removed"] > 4
    assert outcome.counts["registered after an unclean end"] > 4
    assert outcome.lost == 0


def test_so_does_an_empty_disk_in_the_place_of_a_log_directory() -> None:
    outcome = play(directories=2, detail=0.1)
    assert outcome.violation is None
    assert outcome.counts["log directories replaced"] > 4
    assert outcome.lost == 0


def test_a_broker_that_takes_such_a_log_for_a_new_one_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogDirectories, "lost_logs", lambda self: {})
    violation = play().violation
    assert violation is not None
    assert violation.property_id == "S8"
