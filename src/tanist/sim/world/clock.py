"""The `Clock` and `Random` ports of one simulated process, and the random streams of the world."""

from __future__ import annotations

import random
from collections.abc import Callable

from tanist.ports import Timer
from tanist.sim.world.scheduler import MICROSECONDS, Process, Scheduler

EPOCH_MS = 1_700_000_000_000
"""Time of day at virtual time zero: 2023-11-14."""


def stream(seed: int, purpose: str) -> random.Random:
    """The random stream of one purpose. Each has its own, so that a change to one leaves the others unchanged.

    Seeded by a string: `random` hashes it by SHA-512, which no environment variable alters.
    """
    return random.Random(f"{seed}/{purpose}")


class SimClock:
    """Virtual time as one process sees it; its wall clock may be off, and may jump."""

    def __init__(self, scheduler: Scheduler, process: Process, wall_skew_ms: int = 0) -> None:
        self._scheduler = scheduler
        self._process = process
        self.wall_skew_ms = wall_skew_ms

    def now_ms(self) -> int:
        return self._scheduler.now_us // MICROSECONDS

    def wall_ms(self) -> int:
        return EPOCH_MS + self._scheduler.now_us // MICROSECONDS + self.wall_skew_ms

    def now_ns(self) -> int:
        return self._scheduler.now_us * 1_000

    def call_at(self, when_ms: int, callback: Callable[[], None]) -> Timer:
        return self._scheduler.at(when_ms * MICROSECONDS, callback, self._process)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Within the present turn. Outside of one (a test's own code) it gets a turn at once."""
        self._process.soon.append(callback)


class SimRandom:
    """The `Random` port over one stream."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def below(self, n: int) -> int:
        return self._rng.randrange(n)

    def bytes(self, n: int) -> bytes:
        return self._rng.randbytes(n)
