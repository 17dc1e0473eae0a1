"""Bit rot: whole batches only are believed, and what is rotten is fetched anew or restored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tanist.client import positions
from tanist.sim.faults.schedule import Fault
from tanist.sim.run.chaos_run import ChaosConfig, ChaosRun, SeedResult

SEED = 5


PROPERTIES = {"log.flush.interval.messages": "1", "log.roll.ms": "500"}


def play(kinds: str) -> SeedResult:
    """Every half second, of one node after the other."""
    chosen = kinds.split()
    faults = [
        Fault(500_000 * n, chosen[n % len(chosen)], 1 + n % 3, 1 + (n + 1) % 3, 400_000, (0.13 * n) % 1)
        for n in range(2, 20)
    ]
    return ChaosRun(SEED, replace(ChaosConfig(), properties=PROPERTIES), faults=faults).run()


def play_late(host: int) -> SeedResult:
    """One node has something rotten when a consumer begins to read everything."""
    config = replace(ChaosConfig(), late_consumers=1, properties=PROPERTIES)
    return ChaosRun(SEED, config, faults=[Fault(5_900_000, "rot", host, 1 + host % 3, 1_000_000, 0.3)]).run()


def test_rotten_logs_are_thrown_away_and_fetched_anew() -> None:
    outcome = play("rot")
    assert outcome.violation is None
    assert outcome.counts["rotten logs thrown away"] > 2
    assert outcome.lost == 0


def test_recovery_meets_what_is_rotten() -> None:
    outcome = play("rot crash")
    assert outcome.violation is None
    assert outcome.counts["fault: rot"] > 1
    assert outcome.counts["fault: crash"] > 1


def test_consumers_refuse_what_is_rotten(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = {host: play_late(host) for host in (1, 2, 3)}
    assert not [outcome.violation for outcome in outcomes.values() if outcome.violation]
    leaders = [host for host, outcome in outcomes.items() if outcome.counts["rotten batches refused by consumers"]]
    assert leaders
    monkeypatch.setattr(positions, "crc_matches", lambda view, at, size: True)
    violation = play_late(leaders[0]).violation
    assert violation is not None, "a client that does not look at CRCs is found out"
    assert violation.property_id in ("S18", "crash")


def test_a_full_disk_ends_a_node_until_there_is_space() -> None:
    outcome = play("disk-full")
    assert outcome.violation is None
    assert outcome.counts["fault: disk-full"] > 3
    assert outcome.counts["registered after an unclean end"] > 3
