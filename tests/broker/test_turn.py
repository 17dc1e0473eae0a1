"""The end of a turn, by itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from tanist.broker.turn import Turn


class Later:
    """A clock that stands, and what is to be done soon."""

    def __init__(self) -> None:
        self._soon: deque[Callable[[], None]] = deque()
        self.turns = 0

    def now_ms(self) -> int:
        return 0

    wall_ms = now_ms

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def run(self) -> None:
        while self._soon:
            self.turns += 1
            self._soon.popleft()()


@pytest.fixture
def later() -> Later:
    return Later()


@pytest.fixture
def turn(later: Later) -> Turn:
    clock: Any = later
    disk: Any = None  # nothing is written
    return Turn(clock, disk)


def test_what_is_gathered_is_written_in_its_turn_and_reported_after(turn: Turn, later: Later) -> None:
    seen: list[str] = []
    turn.after_writes(lambda: seen.append("answered"))
    turn.before_writes(lambda: seen.append("gathered"))
    later.run()
    assert seen == ["gathered", "answered"]
    assert later.turns == 1


def test_what_comes_up_while_it_is_gathered_is_of_the_same_turn(turn: Turn, later: Later) -> None:
    seen: list[str] = []
    turn.before_writes(lambda: turn.before_writes(lambda: seen.append("second")))
    later.run()
    assert seen == ["second"]
    assert later.turns == 1


def test_what_is_gathered_after_the_writes_has_a_turn_of_its_own(turn: Turn, later: Later) -> None:
    """Though nothing else ever happens."""
    seen: list[str] = []
    turn.after_writes(lambda: turn.before_writes(lambda: seen.append("gathered")))
    later.run()
    assert seen == ["gathered"]
    assert later.turns == 2
