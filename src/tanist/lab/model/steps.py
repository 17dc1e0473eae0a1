"""What every model of this room is made of: states, the steps between them, and what is wrong with either.

Owns `Model`, the contract between a model and `search`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

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
