"""Breadth-first search over the states of a model: exhaustive within its limits, with the shortest counterexample.

Owns `search` and its `SearchResult`. States are visited in the order of their distance from the first, so the first
violation found is one of the nearest. Only the parent of each state is kept; the steps of a counterexample are found
again by taking them.
"""

from __future__ import annotations

import gc
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from tanist.lab.model.steps import Label, Model, State, Violation

_READ_CLOCK_EVERY = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that end a search before it has visited all states. None: no limit."""

    depth: int | None = None
    states: int | None = None
    seconds: float | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Steps from the first state to a violation: each with the state after it, under the names of the first state."""

    first: State
    steps: tuple[tuple[Label, State], ...]
    violation: Violation


@dataclass(slots=True)
class SearchResult:
    """The extent of a search, and its counterexample."""

    states: int = 0
    """Distinct states; states that differ only in names count once."""
    steps: int = 0
    """Steps taken, into new states and old ones."""
    depth: int = 0
    """All states up to this distance were visited; steps were taken from all nearer ones."""
    levels: list[int] = field(default_factory=list)
    """New states by distance."""
    exhausted: bool = False
    """All states were visited."""
    stopped_by: str = ""
    """Otherwise: depth, states, seconds or violation."""
    seconds: float = 0.0
    counterexample: Counterexample | None = None

    @property
    def rate(self) -> float:
        """Distinct states a second."""
        return self.states / self.seconds if self.seconds else 0.0


class _Found(Exception):
    def __init__(self, parent: int, violation: Violation) -> None:
        super().__init__(violation.name)
        self.parent = parent
        self.violation = violation


def search(
    model: Model,
    limits: Limits = NO_LIMITS,
    *,
    first: State | None = None,
    clock: Callable[[], float] = time.perf_counter,
    on_level: Callable[[SearchResult], None] | None = None,
) -> SearchResult:
    """Visit all states from `first` (the model's own by default) within the limits, or up to the first violation."""
    outcome = SearchResult()
    start = model.initial() if first is None else first
    began = clock()
    collecting = gc.isenabled()
    gc.disable()  # millions of tuples, without cycles
    try:
        _search(model, start, limits, outcome, clock, began, on_level)
    finally:
        if collecting:
            gc.enable()
        outcome.seconds = clock() - began
    return outcome


def _search(
    model: Model,
    start: State,
    limits: Limits,
    outcome: SearchResult,
    clock: Callable[[], float],
    began: float,
    on_level: Callable[[SearchResult], None] | None,
) -> None:
    expand, representative, violation_of = model.expand, model.representative, model.violation_of
    first = representative(start)
    number_of = {first: 0}
    parents = array("q", [-1])
    level = [first]
    outcome.states, outcome.levels = 1, [1]
    deadline = None if limits.seconds is None else began + limits.seconds
    at = 0
    wrong = violation_of(first)
    if wrong is not None:
        outcome.stopped_by = "violation"
        outcome.counterexample = Counterexample(start, (), wrong)
        return
    try:
        while level:
            if limits.depth is not None and outcome.depth >= limits.depth:
                outcome.stopped_by = "depth"
                return
            following: list[State] = []
            for state in level:
                steps = expand(state)
                outcome.steps += len(steps)
                for _, after, broken in steps:
                    if broken is not None:
                        raise _Found(at, broken)
                    known = representative(after)
                    if known not in number_of:
                        number_of[known] = len(parents)
                        parents.append(at)
                        wrong = violation_of(known)
                        if wrong is not None:
                            raise _Found(at, wrong)
                        following.append(known)
                at += 1
                if not at % _READ_CLOCK_EVERY and deadline is not None and clock() > deadline:
                    outcome.stopped_by = "seconds"
                    return
                if limits.states is not None and len(parents) >= limits.states:
                    outcome.stopped_by = "states"
                    return
            outcome.states = len(parents)
            if following:
                outcome.depth += 1
                outcome.levels.append(len(following))
            level = following
            if on_level is not None:
                outcome.seconds = clock() - began
                on_level(outcome)
        outcome.exhausted = True
    except _Found as found:
        outcome.stopped_by = "violation"
        outcome.counterexample = _retrace(model, start, _ancestry(number_of, parents, found.parent), found.violation)
    finally:
        outcome.states = len(parents)


def _ancestry(number_of: dict[State, int], parents: array[int], last: int) -> list[State]:
    """The states from the first to number `last`."""
    numbers = []
    at = last
    while at >= 0:
        numbers.append(at)
        at = parents[at]
    states = list(number_of)
    return [states[number] for number in reversed(numbers)]


def _retrace(model: Model, start: State, ancestry: list[State], violation: Violation) -> Counterexample:
    """Take the steps again, without renaming brokers on the way."""
    at = start
    taken: list[tuple[Label, State]] = []
    for known in ancestry[1:]:
        label, at = next((label, after) for label, after, _ in model.expand(at) if model.representative(after) == known)
        taken.append((label, at))
    for label, after, broken in model.expand(at):
        wrong = broken if broken is not None else model.violation_of(after)
        if wrong is not None and wrong.name == violation.name:
            return Counterexample(start, (*taken, (label, after)), wrong)
    raise RuntimeError(f"{violation} was found once, and not again")
