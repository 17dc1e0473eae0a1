"""How a value is chosen: one of a few, so that requests meet."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.interop.requests.symbols import Symbol

Choice = Callable[[Random], Any]


def one_of(*values: Any) -> Choice:
    return lambda random: random.choice(values)


def named(*names: str) -> tuple[Symbol, ...]:
    """Names of the sequence's own."""
    return tuple(Symbol("name", each) for each in names)
