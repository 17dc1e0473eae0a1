"""The common types of all models: states, the steps between them, and violations.

Owns `Model` and `TraceFormat`, the contracts between a model, `search` and `checking`; and `Table`, by which a state
is a short tuple of integers. The parts of a state recur in many states, so each is stored once, and the results of the
real objects are remembered by its number. Numbers follow the order of first appearance, and mean nothing beyond one
search.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)


class Table(Generic[T]):
    """Values by number, numbers by value."""

    __slots__ = ("_numbers", "values")

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: int) -> T:
        return self.values[number]

    def number(self, value: T) -> int:
        """The number of `value`, which is given one if it has none."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = len(self.values)
            self.values.append(value)
        return known


State: TypeAlias = tuple[int, ...]
"""The numbers of a state's parts. Only the model knows their meaning."""

Permutation: TypeAlias = tuple[int, ...]
"""The new number of each node: brokers, or voters, differ by name only."""


class Label(NamedTuple):
    """A step: its name, its broker or voter (counted from 0; -1 for none), and details."""

    name: str
    who: int = -1
    detail: str = ""

    def __str__(self) -> str:
        """As a directed start writes it, counted from 1: `lose 1 keeps 0`, `fence 1 -> 2`."""
        text = self.name if self.who < 0 else f"{self.name} {self.who + 1}"
        return f"{text} {self.detail}" if self.detail else text


@dataclass(frozen=True, slots=True)
class Violation:
    """A property that does not hold, and the reason."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


Step: TypeAlias = tuple[Label, State, Violation | None]
"""The label, the state after the step, and the property that it broke."""


class Model(Protocol):
    """A space of states."""

    def initial(self) -> State:
        """The first state."""

    def expand(self, state: State) -> list[Step]:
        """All possible next steps. The search does not follow a step that broke a property."""

    def representative(self, state: State) -> State:
        """One state for all states with the same future except for names."""

    def violation_of(self, state: State) -> Violation | None:
        """The property that does not hold in this state."""


class TracedModel(Model, Protocol):
    """A model with a trace format."""

    @property
    def trace_format(self) -> TraceFormat:
        """The format of its steps and states."""


class TraceFormat(Protocol):
    """Formats the steps and states of a model."""

    def sentence(self, label: Label, before: State, after: State) -> str:
        """The event and its effect."""

    def why(self, label: Label, before: State, after: State) -> str | None:
        """The rule behind the step, if there is one."""

    def lanes(self, label: Label, before: State) -> tuple[str, str | None]:
        """The lane of the event, and the receiver's if it is a message."""

    def picture(self, state: State) -> list[str]:
        """The state, in lines."""

    def values(self, state: State) -> dict[str, Any]:
        """The state, for programs."""


def directed(model: TracedModel, state: State, start: Iterable[str]) -> State:
    """Take the steps of a directed start. `ValueError` if a text names none of the possible steps."""
    for text in start:
        _, state, broken = take(model, state, text)
        if broken is not None:
            raise ValueError(f"{text!r} breaks {broken}")
    return state


def take(model: TracedModel, state: State, text: str) -> Step:
    """The step that `named` gives this text. `ValueError` if there is none."""
    names = _names(model, state)
    if text not in names:
        raise ValueError(f"{text!r} is none of the steps {sorted(names)}")
    return names[text]


def named(model: TracedModel, state: State, after: State, label: Label) -> str:
    """A text for the step from `state` to `after`, by which `take` finds it."""
    return next(name for name, step in _names(model, state).items() if step[0] == label and step[1] == after)


def _names(model: TracedModel, state: State) -> dict[str, Step]:
    """Labels. A label with several outcomes has a number for each: "restart 1 #2".

    They are numbered in the order of their printed states, which is the same in every search.
    """
    outcomes: dict[str, dict[State, Step]] = {}
    for step in model.expand(state):
        known = outcomes.setdefault(str(step[0]), {})
        if step[1] not in known or step[2] is not None:
            known[step[1]] = step
    names = {}
    for text, found in outcomes.items():
        steps = list(found.values())
        if len(steps) == 1:
            names[text] = steps[0]
            continue
        steps.sort(key=lambda step: model.trace_format.picture(step[1]))
        names |= {f"{text} #{number}": step for number, step in enumerate(steps, 1)}
    return names


def rename_mask(mask: int, to: Permutation) -> int:
    renamed = 0
    for broker, name in enumerate(to):
        if mask >> broker & 1:
            renamed |= 1 << name
    return renamed


def rename_one(broker: int, to: Permutation) -> int:
    return broker if broker < 0 else to[broker]
