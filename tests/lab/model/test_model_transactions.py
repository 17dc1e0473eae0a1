"""The transactions' model: what it exhausts, what it finds of broken rules, and that its scenarios can be kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tanist.lab import model_scenario
from tanist.lab.model import CONFIGURATIONS, Limits, check
from tanist.lab.model.transactions.model import TransactionModel, TransactionsConfiguration
from tanist.lab.model.transactions.state import Batch, TransactionBudget, outcomes_in
from tanist.lab.mutations.model import applied
from tanist.lab.mutations.model_transactions import MODEL_TRANSACTION_MUTATIONS

LONG = {"T3", "T4", "T5", "T6"}
"""These take some seconds."""


def small(name: str, **budget: int) -> TransactionsConfiguration:
    configuration = CONFIGURATIONS[name]
    assert isinstance(configuration, TransactionsConfiguration)
    return replace(configuration, budget=TransactionBudget(**budget))


@pytest.mark.parametrize("name", ["transactions", "transactions-old"])
def test_two_transactions_and_a_failover_are_exhausted(name: str) -> None:
    checked = check(small(name, transactions=2, failovers=1))
    assert checked.passed
    assert checked.outcome.exhausted
    assert checked.outcome.states > 3_000


def test_both_transactions_can_be_committed() -> None:
    """Otherwise nothing would be wrong because nothing happens."""
    checked = check(small("transactions", transactions=2))
    assert isinstance(checked.model, TransactionModel)
    found = {number for log in checked.model.partitions.values for number in outcomes_in(log, 2).committed}
    assert found == {1, 2}


def test_a_late_end_tears_a_transaction_of_an_old_client() -> None:
    checked = check(CONFIGURATIONS["transactions-late-end"])
    found = checked.outcome.counterexample
    assert found is not None
    assert (found.violation.name, len(found.steps)) == ("X1", 18)
    new = check(small("transactions", transactions=2, delayed=1))
    assert new.outcome.exhausted
    assert new.passed


@pytest.mark.parametrize(
    "number",
    [pytest.param(each, marks=[pytest.mark.slow] if each in LONG else []) for each in MODEL_TRANSACTION_MUTATIONS],
)
def test_it_is_noticed(number: str) -> None:
    mutation = MODEL_TRANSACTION_MUTATIONS[number]
    with applied(mutation):
        found = check(CONFIGURATIONS[mutation.configuration], Limits(states=200_000)).outcome.counterexample
    assert found is not None
    assert found.violation.name in mutation.caught_by


def test_a_log_says_what_is_committed() -> None:
    log = (Batch("data", 0, 0, 1), Batch("commit", 1, 0), Batch("data", 1, 0, 2), Batch("abort", 3, 0))
    found = outcomes_in(log, 2)
    assert (found.committed, found.aborted, found.open, found.wrong) == (frozenset({1}), frozenset({2}), (), "")
    assert "ends a transaction of epoch 0" in outcomes_in((Batch("data", 0, 0, 1), Batch("commit", 1, 0)), 0).wrong


def test_a_counterexample_is_kept_and_played_again() -> None:
    configuration = CONFIGURATIONS["transactions-late-end"]
    checked = check(configuration)
    found = checked.outcome.counterexample
    assert found is not None
    document = model_scenario.document("a late end", configuration, checked.model, found)
    played = list(model_scenario.moments(document))
    assert played[-1].broken
    assert played[-1].text.startswith("X1")
