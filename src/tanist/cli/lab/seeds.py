"""Which seeds a lab command plays: a range, or a draw from the system's entropy.

A seed that somebody has seen play is a test; only a fresh one is evidence. A draw is a range from a random start, so
that two numbers name it and anybody can play it again.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import click

_DRAWN_BITS = 40
"""Of a draw's first seed: enough that no two draws meet, and short enough to copy by hand."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of a run."""

    numbers: range
    drawn: bool = False
    """From the system's entropy."""

    def __str__(self) -> str:
        first, last = self.numbers.start, self.numbers.stop - 1
        return str(first) if first == last else f"{first}..{last}"


def parsed(value: str) -> range:
    """The type of `7`, or `1..200` with both ends."""
    first, dots, last = value.partition("..")
    try:
        seeds = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a seed nor a range A..B") from None
    if not seeds:
        raise click.BadParameter(f"{value} is empty")
    return seeds


def draw(count: int) -> Seeds:
    """So many fresh seeds."""
    first = secrets.randbits(_DRAWN_BITS)
    return Seeds(range(first, first + count), drawn=True)
