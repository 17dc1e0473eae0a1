"""What a replay is made of, whoever plays it: the simulator from a seed, or the model checker from its steps.

A player yields moments in the order in which they happened; `tanist.lab.replay` chooses among them (`selection`) and
draws them as a sequence diagram with a lane for each participant (`diagram`). Players know nothing of the drawing, and
the drawing nothing of what is played.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Weight(IntEnum):
    """How much a moment tells, for who does not want to see all."""

    DETAIL = 0
    """Of interest to who wants to see everything."""
    PART = 1
    """Part of what became of its partition."""
    TURN = 2
    """A turning point: a fault, an election, what an operator does."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened.

    `at` is when, as it is printed: virtual seconds ("12.345") or a step ("3"). `lane` is who did it or to whom it was
    done ("broker 1", "controller 3001", "client", "operator"). With `to` it is a message between two lanes. `why` is
    the rule that made it so, in a sentence, where there is one to tell. `broken` marks the moment at which a property
    did not hold.
    """

    at: str
    lane: str
    text: str
    to: str | None = None
    why: str | None = None
    broken: bool = False
    about: str | None = None
    """The partition ("events-0") that it is about; None: all of them."""
    weight: Weight = Weight.PART
    alive: bool | None = None
    """Whether `lane` is up from here on, if this changes it."""
