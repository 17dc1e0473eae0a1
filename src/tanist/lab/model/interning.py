"""Small numbers for large values, so that a state is a short tuple of integers.

Owns `Table`. The parts of a state recur in many states, so each is stored once, and the results of the real objects are
remembered by its number. Numbers follow the order of first appearance and have no meaning beyond one search.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

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
