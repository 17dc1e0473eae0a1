"""Events that clients can cause: one in an interval, with the number of those that were left out.

Clients decide how often such a thing happens, and must not fill the disk with it.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.events.event import Event
from tanist.events.stream import Events
from tanist.ports import Clock


class Throttled:
    """Events of one kind."""

    def __init__(self, clock: Clock, events: Events, interval_ms: int) -> None:
        self._clock = clock
        self._events = events
        self._interval_ms = interval_ms
        self._next_ms = 0
        self._left_out = 0

    def emit(self, event: Callable[[int], Event]) -> None:
        """Emit the event of so many that were left out, or leave it out if there was one not long ago."""
        now_ms = self._clock.now_ms()
        if now_ms < self._next_ms:
            self._left_out += 1
            return
        left_out, self._left_out = self._left_out, 0
        self._next_ms = now_ms + self._interval_ms
        self._events.emit(event(left_out))
