"""Each rule that is broken is noticed by the model checker, by the property that is there for it."""

from __future__ import annotations

import pytest

from tanist.lab.model import CONFIGURATIONS, Limits, check
from tanist.lab.mutations.model import MUTATIONS, Mutation, Patch, applied
from tanist.replica.leader import LeaderState

REQUIRED = {f"A{number}" for number in (*range(1, 10), 11, 12, *range(14, 20), 21, 27)}
"""What the model checker has to notice, whatever else it does."""

LONG = {"A12", "A20", "A22", "A25", "A35", "A39"}
"""These take some seconds."""

FEWEST_STEPS = {"A2": 6, "A1": 4, "A9": 1, "A21": 1, "A47": 6}
"""Some of the lengths: a counterexample is one of the shortest, so these do not change at random."""

STATES = 200_000


def test_the_required_ones_are_there() -> None:
    assert set(MUTATIONS) >= REQUIRED
    assert {each.configuration for each in MUTATIONS.values()} <= set(CONFIGURATIONS)
    assert all(number == each.number for number, each in MUTATIONS.items())


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=[pytest.mark.slow] if number in LONG else []) for number in MUTATIONS]
)
def test_it_is_noticed(number: str) -> None:
    mutation = MUTATIONS[number]
    with applied(mutation):
        checked = check(CONFIGURATIONS[mutation.configuration], Limits(states=STATES), unwatched=mutation.unwatched)
    found = checked.outcome.counterexample
    assert found is not None
    assert found.violation.name in mutation.caught_by
    assert len(found.steps) == FEWEST_STEPS.get(number, len(found.steps))


@pytest.mark.parametrize("number", MUTATIONS)
def test_what_was_broken_is_whole_again(number: str) -> None:
    mutation = MUTATIONS[number]
    places = [(patch.owner, patch.name) for patch in mutation.patches()]
    before = [vars(owner).get(name) for owner, name in places]
    with applied(mutation):
        assert all(vars(owner)[name] is not was for (owner, name), was in zip(places, before, strict=True))
    assert [vars(owner).get(name) for owner, name in places] == before


def test_a_patch_of_something_inherited_leaves_no_trace() -> None:
    name = "_has_epoch_start"
    assert name not in vars(LeaderState)
    mutation = Mutation(
        "A0", "", "one-fencing", frozenset(), lambda: (Patch(LeaderState, name, lambda *_: True),), frozenset()
    )
    with applied(mutation):
        assert name in vars(LeaderState)
    assert name not in vars(LeaderState)


def test_what_is_whole_again_is_searched_without_fault() -> None:
    """The searches of broken rules leave nothing behind that a later one could stumble over."""
    mutation = MUTATIONS["A1"]
    with applied(mutation):
        assert not check(CONFIGURATIONS[mutation.configuration], Limits(depth=6)).passed
    assert check(CONFIGURATIONS[mutation.configuration], Limits(depth=6)).passed
