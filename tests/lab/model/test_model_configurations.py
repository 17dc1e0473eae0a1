"""The shipped configurations: what is searched without a fault, and how far."""

from __future__ import annotations

import pytest

from tanist.lab.model import CONFIGURATIONS, Limits, check, checking

EXHAUSTED = {"one-outside": 7_997, "preferred-leaders": 2_311}
"""All states of the smallest configurations. A change of these numbers is a change of what may happen: look at it."""

EXHAUSTED_SLOWLY = {
    "one-fencing": 49_419,
    "min-isr-1": 40_285,
    "min-isr-3": 38_488,
    "two-outside": 37_600,
    "quorum-old-epoch": 56_098,
    "quorum-voter-changes": 30_939,
    "transactions": 204_994,
    "transactions-answers": 57_230,
    "transactions-old": 79_114,
}

KNOWN_FAULTS = {"min-isr-changes": "S3", "transactions-late-end": "X1"}
"""The results of the search with the unbroken rules; docs/model-checker.md explains each."""


@pytest.mark.parametrize("name", EXHAUSTED)
def test_the_smallest_are_exhausted(name: str) -> None:
    outcome = check(CONFIGURATIONS[name]).outcome
    assert outcome.counterexample is None
    assert (outcome.exhausted, outcome.states) == (True, EXHAUSTED[name])
    assert sum(outcome.levels) == outcome.states
    assert len(outcome.levels) == outcome.depth + 1


@pytest.mark.slow
@pytest.mark.parametrize("name", EXHAUSTED_SLOWLY)
def test_these_are_exhausted_too(name: str) -> None:
    outcome = check(CONFIGURATIONS[name]).outcome
    assert outcome.counterexample is None
    assert (outcome.exhausted, outcome.states) == (True, EXHAUSTED_SLOWLY[name])


@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if name not in KNOWN_FAULTS])
def test_nothing_is_wrong_nearby(name: str) -> None:
    checked = check(CONFIGURATIONS[name], Limits(depth=6, states=2_000))
    assert checked.passed, "\n".join(checking.lines(checked))
    assert checked.outcome.states > 50


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if name not in KNOWN_FAULTS])
def test_nothing_is_wrong_as_far_as_a_hundred_thousand_states_go(name: str) -> None:
    checked = check(CONFIGURATIONS[name], Limits(states=100_000))
    assert checked.passed, "\n".join(checking.lines(checked))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "property_name"), KNOWN_FAULTS.items())
def test_what_is_known_to_be_wrong_is_found(name: str, property_name: str) -> None:
    checked = check(CONFIGURATIONS[name], Limits(states=200_000))
    assert checked.outcome.counterexample is not None
    assert checked.outcome.counterexample.violation.name == property_name
