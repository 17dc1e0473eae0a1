"""The moments of a replay, played by the simulator from a seed or by the model checker from its steps.

A player yields moments in the order in which they happened; `tanist.lab.replay` chooses among them (`selection`) and
draws them as a sequence diagram with a lane for each participant (`diagram`). Players and the drawing do not know each
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Weight(IntEnum):
    """The importance of a moment, for readers who do not want to see all."""

    DETAIL = 0
    """Shown only to readers who want everything."""
    PART = 1
    """Part of the story of its partition."""
    TURN = 2
    """A turning point: a fault, an election, an operation."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One event.

    `at` is its time, as it is printed: virtual seconds ("12.345") or a step ("3"). `lane` is its participant ("broker
    1", "controller 3001", "client", "operator"). With `to` it is a message between two lanes. `why` is the rule behind
    it, in a sentence, if there is one. `broken` marks the moment at which a property did not hold.
    """

    at: str
    lane: str
    text: str
    to: str | None = None
    why: str | None = None
    broken: bool = False
    about: str | None = None
    """The partition ("events-0") that it concerns; None: all of them."""
    weight: Weight = Weight.PART
    alive: bool | None = None
    """Whether `lane` is up from here on, if this changes it."""
