"""One timer for many deadlines: it rings at the earliest that was set."""

from __future__ import annotations

from collections.abc import Callable

from tanist.coordinator.effects import NEVER_MS
from tanist.ports import Clock, Timer


class Alarm:
    """Rings once; who is called sets it anew for what is left."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._timer: Timer | None = None
        self._at_ms = NEVER_MS

    def set(self, at_ms: int) -> None:
        """Ring at this time, if not before."""
        if at_ms >= self._at_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._at_ms = at_ms
        self._timer = self._clock.call_at(at_ms, self._rings)

    def cancel(self) -> None:
        """Ring no more for what was set."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._at_ms = None, NEVER_MS

    def _rings(self) -> None:
        self._timer, self._at_ms = None, NEVER_MS
        self._ring()
