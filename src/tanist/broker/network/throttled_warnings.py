"""Warnings that clients can cause: one line in an interval, with the number of those that were left out.

Clients decide how often such a thing happens, and must not fill the disk with it.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.ports import Clock


class ThrottledWarnings:
    """Warnings of one kind."""

    def __init__(self, clock: Clock, report: Callable[[str, str], None], interval_ms: int) -> None:
        self._clock = clock
        self._report = report
        self._interval_ms = interval_ms
        self._next_ms = 0
        self._left_out = 0

    def add(self, what: str) -> None:
        """Report a warning, or count it if there was one not long ago."""
        now_ms = self._clock.now_ms()
        if now_ms < self._next_ms:
            self._left_out += 1
            return
        more = f" (and {self._left_out} like it)" if self._left_out else ""
        self._next_ms, self._left_out = now_ms + self._interval_ms, 0
        self._report("WARN", what + more)
