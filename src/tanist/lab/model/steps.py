"""What every model of this room is made of: states, the steps between them, and what is wrong with either.

Owns `Model` and `Words`, the contracts between a model, `search` and `checking`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

State: TypeAlias = tuple[int, ...]
"""The numbers of a state's parts. What they mean, only the model knows."""


class Label(NamedTuple):
    """A step: what happened, to whom (counted from 0; -1 for nobody), and what else there is to say of it."""

    name: str
    who: int = -1
    detail: str = ""

    def __str__(self) -> str:
        """As a directed start writes it, who counted from 1: `lose 1 keeps 0`, `fence 1 -> 2`."""
        text = self.name if self.who < 0 else f"{self.name} {self.who + 1}"
        return f"{text} {self.detail}" if self.detail else text


@dataclass(frozen=True, slots=True)
class Violation:
    """A property that does not hold, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


Step: TypeAlias = tuple[Label, State, Violation | None]
"""What happened, the state after it, and the property that the step broke."""


class Model(Protocol):
    """A space of states."""

    def initial(self) -> State:
        """Where it begins."""

    def expand(self, state: State) -> list[Step]:
        """Everything that may happen next. The search looks at no state behind a step that broke a property."""

    def representative(self, state: State) -> State:
        """One state for all that have the same future but for names."""

    def violation_of(self, state: State) -> Violation | None:
        """The property that does not hold in this state."""


class Words(Protocol):
    """Tells of a model's states."""

    def sentence(self, label: Label, before: State, after: State) -> str:
        """What happened, and what came of it."""

    def picture(self, state: State) -> list[str]:
        """The state, in lines."""

    def values(self, state: State) -> dict[str, Any]:
        """The state, for programs."""


def directed(model: Model, state: State, start: Iterable[str]) -> State:
    """Take the steps of a directed start, each by its label. `ValueError` where a label does not name one step."""
    for text in start:
        steps = model.expand(state)
        fits = {after for label, after, broken in steps if str(label) == text and broken is None}
        if len(fits) != 1:
            raise ValueError(f"{text!r} is {len(fits)} of the steps {sorted({str(label) for label, _, _ in steps})}")
        state = fits.pop()
    return state
