"""The search itself, over spaces that are known by heart."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import pytest

from tanist.lab.model.search import Limits, search
from tanist.lab.model.steps import Label, State, Step, Violation


@dataclass
class Grid:
    """Points of a quarter plane, from (0, 0) by steps to the right and up; `size` bounds both."""

    size: int
    forbidden: frozenset[State] = frozenset()
    broken_steps: frozenset[tuple[State, State]] = frozenset()
    mirrored: bool = False
    expanded: list[State] = field(default_factory=list)

    def initial(self) -> State:
        return (0, 0)

    def expand(self, state: State) -> list[Step]:
        self.expanded.append(state)
        x, y = state
        steps: list[Step] = []
        for name, after in (("right", (x + 1, y)), ("up", (x, y + 1))):
            if max(after) <= self.size:
                broken = Violation("step", f"{state} to {after}") if (state, after) in self.broken_steps else None
                steps.append((Label(name), after, broken))
        return steps

    def representative(self, state: State) -> State:
        return min(state, state[::-1]) if self.mirrored else state

    def violation_of(self, state: State) -> Violation | None:
        return Violation("state", str(state)) if state in self.forbidden else None


def test_everything_is_visited_once() -> None:
    grid = Grid(4)
    outcome = search(grid)
    assert outcome.exhausted
    assert (outcome.states, outcome.depth, outcome.levels) == (25, 8, [1, 2, 3, 4, 5, 4, 3, 2, 1])
    assert outcome.steps == 2 * 4 * 5
    assert sorted(grid.expanded) == sorted({(x, y) for x in range(5) for y in range(5)})
    assert outcome.stopped_by == ""


def test_one_state_for_all_that_are_alike() -> None:
    outcome = search(Grid(4, mirrored=True))
    assert (outcome.exhausted, outcome.states) == (True, 15)


def test_the_nearest_fault_is_found() -> None:
    outcome = search(Grid(5, forbidden=frozenset({(5, 5), (0, 4), (3, 2)})))
    assert not outcome.exhausted
    assert outcome.stopped_by == "violation"
    found = outcome.counterexample
    assert found is not None
    assert [str(label) for label, _ in found.steps] == ["up", "up", "up", "up"]
    assert [state for _, state in found.steps] == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert str(found.violation) == "state: (0, 4)"


def test_a_step_may_be_the_fault() -> None:
    outcome = search(Grid(5, broken_steps=frozenset({((2, 1), (2, 2))})))
    found = outcome.counterexample
    assert found is not None
    assert [state for _, state in found.steps][-2:] == [(2, 1), (2, 2)]
    assert len(found.steps) == 4
    assert found.violation.name == "step"


def test_names_do_not_change_on_the_way_to_a_fault() -> None:
    """The search knows representatives only; the story is one of a single run."""
    grid = Grid(5, forbidden=frozenset({(2, 3), (3, 2)}), mirrored=True)
    found = search(grid).counterexample
    assert found is not None
    at = (0, 0)
    for label, state in found.steps:
        assert state == ((at[0] + 1, at[1]) if label.name == "right" else (at[0], at[1] + 1))
        at = state
    assert at in grid.forbidden


def test_the_first_state_may_be_wrong() -> None:
    outcome = search(Grid(2, forbidden=frozenset({(0, 0)})))
    assert outcome.counterexample is not None
    assert outcome.counterexample.steps == ()


@pytest.mark.parametrize(
    ("limits", "states", "depth", "by"),
    [
        (Limits(depth=3), 10, 3, "depth"),
        (Limits(states=7), 8, 2, "states"),
        (Limits(depth=0), 1, 0, "depth"),
    ],
)
def test_limits(limits: Limits, states: int, depth: int, by: str) -> None:
    outcome = search(Grid(9), limits)
    assert (outcome.states, outcome.depth, outcome.stopped_by) == (states, depth, by)
    assert not outcome.exhausted
    assert outcome.counterexample is None


def test_the_limit_of_time() -> None:
    ticks = iter(range(10_000))
    outcome = search(Grid(60), Limits(seconds=5), clock=lambda: float(next(ticks)))
    assert outcome.stopped_by == "seconds"
    assert 1 < outcome.states < 61 * 61
    assert outcome.seconds > 5
    assert outcome.rate == outcome.states / outcome.seconds


def test_levels_are_reported_as_they_are_done() -> None:
    reported: list[tuple[int, int]] = []
    search(Grid(2), on_level=lambda outcome: reported.append((outcome.depth, outcome.states)))
    assert reported == [(1, 3), (2, 6), (3, 8), (4, 9), (4, 9)]


def test_another_beginning() -> None:
    assert search(Grid(4), first=(3, 3)).states == 4


def test_collection_of_garbage_is_as_it_was() -> None:
    was = gc.isenabled()
    try:
        for wanted in (True, False):
            (gc.enable if wanted else gc.disable)()
            search(Grid(2))
            assert gc.isenabled() is wanted
    finally:
        (gc.enable if was else gc.disable)()
