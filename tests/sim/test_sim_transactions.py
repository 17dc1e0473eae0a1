"""Runs with transactions: they hold, are the same each time, and notice rules that are broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tanist.lab.mutations.examination import hunt
from tanist.lab.mutations.rules_of_transactions import TRANSACTION_MUTANTS
from tanist.sim.checkers.transactions import Scan, numbers_of
from tanist.sim.run.chaos_run import ChaosRun, run
from tanist.sim.run.config import BUMPING, OLD, TRANSACTIONS
from tanist.sim.run.drawing import config_of
from tanist.sim.run.transaction_profiles import of_a_group
from tanist.sim.run.transactions import TRANSACTIONS_EXPECTED

SHOWN_BY = {
    "T1": {"X1", "X2", "X3", "X9"},
    "T2": {"X1", "X3", "X4", "X6", "X9"},
    "T3": {"X1", "X3", "X4", "X7", "X8", "X9"},
    "T4": {"X1", "X2", "X3", "X4", "X8", "X9", "X12"},
    "T5": {"X1", "X2", "X3", "X4", "X9"},
    "T6": {"L12", "X7", "X9"},
    "T7": {"L12", "X7", "X9"},
    "T8": {"X1", "X2", "X3", "X6", "X7", "X9"},
    "T9": {"L12", "X1", "X3", "X7", "X9"},
    "T10": {"X1"},
    "T11": {"X1"},
    "T12": {"X1"},
    "T13": {"X10", "X5"},
    "T14": {"L12", "X7"},
    "T15": {"X1", "X3", "X7", "X9"},
    "T16": {"L12", "X7", "X9"},
    "T17": {"L12", "X3", "X7"},
    "T18": {"X1"},
    "T19": {"X1", "X3"},
    "T20": {"X1", "X11"},
    "T21": {"L12", "X10", "X5", "X7", "X8"},
    "T22": {"X8", "X10"},
}
SOON = {"T4": 1, "T7": 17, "T10": 3, "T12": 3, "T13": 3, "T15": 3, "T19": 7}
"""Shown by the first seeds: the search begins at the one that showed it last."""
PATIENCE = 80


@pytest.mark.parametrize("seed", [11, 14])
def test_a_seed_holds(seed: int) -> None:
    outcome = run(seed, config_of(seed, TRANSACTIONS))
    assert outcome.violation is None, outcome.violation
    assert outcome.counts["transactions: committed"]


@pytest.mark.parametrize("clients", [OLD, BUMPING])
def test_without_faults_nothing_starts_again(clients: str) -> None:
    config = config_of(3, TRANSACTIONS).calm().with_settings(clients=clients, instances=1)
    outcome = ChaosRun(3, replace(config, fault_time_ms=2_000)).run()
    assert outcome.violation is None, outcome.violation
    assert outcome.counts["transactions: committed"] > 5
    assert not outcome.counts["transactions: applications that start again"]


def test_a_seed_with_unclean_elections_holds() -> None:
    outcome = TRANSACTION_MUTANTS["T17"].play(5).run()
    assert outcome.violation is None, outcome.violation
    assert outcome.counts["losses"]
    assert outcome.counts["transactions: lost markers"]


def test_a_seed_with_trimmed_logs_holds() -> None:
    outcome = ChaosRun(5, config_of(5, TRANSACTIONS, trims=True)).run()
    assert outcome.violation is None, outcome.violation
    assert outcome.counts["transactions: committed"]
    assert outcome.counts["transactions: readers behind the log start"]
    assert outcome.counts["trimming: DeleteRecords acknowledged"]


def test_of_a_number_that_was_written_again_the_deleted_one_does_not_count() -> None:
    scan = Scan(committed=[(3, None, b"a:0"), (4, None, b"a:1"), (9, None, b"a:0")])
    assert sorted(numbers_of(scan, 0)) == ["a:0", "a:0", "a:1"]
    assert sorted(numbers_of(scan, 4)) == ["a:0", "a:1"]
    assert sorted(numbers_of(scan, 20)) == ["a:0", "a:1"]


@pytest.mark.parametrize("seed", [6, 7])
def test_partitions_move_between_members(seed: int) -> None:
    outcome = ChaosRun(seed, of_a_group(seed)).run()
    assert outcome.violation is None, outcome.violation
    assert outcome.counts["transactions: generations fenced"]
    assert outcome.counts["transactions: committed"]


def test_a_seed_is_the_same_each_time() -> None:
    config = replace(config_of(5, TRANSACTIONS), fault_time_ms=3_000)
    assert ChaosRun(5, config).run().digest == ChaosRun(5, config).run().digest


def test_each_rule_is_broken() -> None:
    assert SHOWN_BY.keys() == TRANSACTION_MUTANTS.keys()
    assert TRANSACTIONS_EXPECTED


def shown(name: str, first_seed: int = 1) -> str:
    seen, _ = hunt(TRANSACTION_MUTANTS[name], range(first_seed, first_seed + PATIENCE))
    return "" if seen is None else seen.property_id


@pytest.mark.parametrize("name", SOON)
def test_a_broken_rule_shows_soon(name: str) -> None:
    assert shown(name, SOON[name]) in SHOWN_BY[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHOWN_BY.keys() - SOON.keys()))
def test_a_broken_rule_shows(name: str) -> None:
    assert shown(name) in SHOWN_BY[name]
