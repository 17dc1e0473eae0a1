"""The `Clock` and `Random` ports of one simulated process."""

from __future__ import annotations

import random
from collections.abc import Callable

from tanist.ports import Timer
from tanist.sim.scheduler import MICROSECONDS, Process, Scheduler

EPOCH_MS = 1_700_000_000_000
"""Time of day at virtual time zero: 2023-11-14."""


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

    def call_at(self, when_ms: int, callback: Callable[[], None]) -> Timer:
        return self._scheduler.at(when_ms * MICROSECONDS, callback, self._process)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._process.soon.append(callback)


class SimRandom:
    """Chance of one process, from the world's seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def bytes(self, n: int) -> bytes:
        return self._random.randbytes(n)
