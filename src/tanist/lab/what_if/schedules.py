"""The schedules of a what-if as a model of their own: events that an operator would notice, one after the other.

Owns `Schedules`. It is the partition's model with two differences. Without `races`, all messages arrive before the next
event: metadata at its brokers, a proposal at the controller and its answer, the replies to an unclean recovery; and a
follower that fetches continues until it has caught up. So a schedule of eight events has eight writes, catch-ups,
fencings, shutdowns and returns, and not three of them between arriving messages. (`tanist lab check` covers races.) And
no property is watched, because a what-if shows settings under which properties do not hold. `check` sees each state
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tanist.lab.model.partition.components import Budget
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.losses import Losses
from tanist.lab.model.partition.model import PartitionModel
from tanist.lab.model.partition.symmetry import BUDGET
from tanist.lab.model.search import Counterexample
from tanist.lab.model.steps import Label, State, Step, Violation

EVERY_PROPERTY = frozenset(
    ["L4", *(f"S{number}" for number in range(1, 30)), *(f"U{number}" for number in range(1, 6))],
)

BEFORE_ALL: State = ()
"""The state whose steps are the beginnings."""

Way: TypeAlias = tuple[tuple[Label, State], ...]

_AT_ONCE = ("learn", "alter", "answer", "reply")
"""In this order. Arrivals of one kind do not affect each other."""

_NO_EVENTS = frozenset({*_AT_ONCE, "ask", "unanswered"})
_MOST_FETCHES = 64


class Schedules:
    """A `Model` over a partition."""

    def __init__(self, configuration: Configuration, *, races: bool) -> None:
        self.partition = PartitionModel(configuration, EVERY_PROPERTY)
        self.losses = Losses(self.partition)
        self.check: Callable[[State], Violation | None] = lambda _: None
        self._races = races
        self._delivered: dict[State, tuple[State, Way]] = {}
        self._beginnings: list[State] = []

    def begin(self, starts: Sequence[tuple[str, ...]]) -> None:
        """Begin schedules at the end of each of these starts."""
        self._beginnings = self.partition.begin(starts)

    def allow(self, budget: Budget) -> None:
        """Set the budget of a schedule."""
        number = self.partition.tables.budget(budget)
        self._beginnings = [(*state[:BUDGET], number, *state[BUDGET + 1 :]) for state in self._beginnings]

    def initial(self) -> State:
        return BEFORE_ALL

    def representative(self, state: State) -> State:
        return state if state == BEFORE_ALL else self.partition.representative(state)

    def violation_of(self, state: State) -> Violation | None:
        return None if state == BEFORE_ALL else self.check(state)

    def expand(self, state: State) -> list[Step]:
        """No steps after a loss: nothing more is promised."""
        if state == BEFORE_ALL:
            return [(Label("begin", number), state, None) for number, state in enumerate(self._beginnings)]
        if self.losses.of(state).lost:
            return []
        steps = self.partition.expand(state)
        if self._races:
            return steps
        return [
            (label, self._follow_up(label, after)[0], None) for label, after, _ in steps if label.name not in _NO_EVENTS
        ]

    def _follow_up(self, label: Label, after: State) -> tuple[State, Way]:
        """The state in which an event ends, and the steps from the state after it to there."""
        state, way = self._after_arrivals(after)
        if label.name != "fetch":
            return state, way
        for _ in range(_MOST_FETCHES):
            found = [step for step in self.partition.fetches(state, label.who) if step[0].name == "fetch"]
            if not found:
                return state, way
            fetched, at, _ = found[0]
            state, then = self._after_arrivals(at)
            way = (*way, (fetched, at), *then)
        raise RuntimeError(f"{label.who + 1} fetches and fetches, and never catches up")

    def _after_arrivals(self, state: State) -> tuple[State, Way]:
        """The state after all arrivals, and the steps to it."""
        known = self._delivered.get(state)
        if known is None:
            known = self._delivered[state] = self._deliver(state)
        return known

    def _deliver(self, state: State) -> tuple[State, Way]:
        way: list[tuple[Label, State]] = []
        while not self.losses.of(state).lost:
            arriving = [
                (_AT_ONCE.index(label.name), len(label.detail), label, after)
                for label, after, _ in self.partition.arrivals(state)
                if label.name in _AT_ONCE and not label.detail.startswith("but for") and after != state
            ]
            if not arriving:
                return state, tuple(way)
            _, _, label, state = min(arriving, key=lambda each: each[:2])
            way.append((label, state))
        return state, tuple(way)

    def in_full(self, found: Counterexample) -> tuple[int, Counterexample]:
        """The number of its beginning, and all of the partition's steps from there."""
        (beginning, first), *events = found.steps
        steps: list[tuple[Label, State]] = []
        before = first
        for label, after in events:
            steps += self._way(before, label, after)
            before = after
        return beginning.who, Counterexample(first, tuple(steps), found.violation)

    def _way(self, before: State, label: Label, after: State) -> Way:
        if self._races:
            return ((label, after),)
        for taken, at, _ in self.partition.expand(before):
            end, way = self._follow_up(taken, at)
            if taken == label and end == after:
                return ((label, at), *way)
        raise RuntimeError(f"{label} was a step once, and is none now")
