"""The queue of everything that is going to happen, in microseconds of virtual time.

Events of one instant happen in the order in which they were asked for; nothing else (no hash order, no real time) may
decide an order. An event belongs to a process or to the world; those of a process that has died do not happen.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

MICROSECONDS = 1000
"""Per millisecond."""


class Process:
    """One life of a process: what it has asked for ends with it. `frozen` processes keep their events for later."""

    __slots__ = ("alive", "frozen", "kept", "name", "soon")

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.frozen = False
        self.kept: list[Callable[[], None]] = []
        self.soon: deque[Callable[[], None]] = deque()


class Event:
    """A scheduled callback that can be called off."""

    __slots__ = ("callback", "process")

    def __init__(self, process: Process | None, callback: Callable[[], None]) -> None:
        self.process = process
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Scheduler:
    """Runs events in order of time."""

    def __init__(self, seed: int) -> None:
        self.now_us = 0
        self.events = 0
        self.chance = random.Random(seed)
        self._heap: list[tuple[int, int, Event]] = []
        self._sequence = 0
        self.after_event: Callable[[Process], None] | None = None
        """Called after each turn of a process: where safety is checked."""

    def at(self, when_us: int, callback: Callable[[], None], process: Process | None = None) -> Event:
        """Schedule; an instant that has passed means now."""
        event = Event(process, callback)
        self._sequence += 1
        heappush(self._heap, (max(when_us, self.now_us), self._sequence, event))
        return event

    def after(self, delay_us: int, callback: Callable[[], None], process: Process | None = None) -> Event:
        return self.at(self.now_us + delay_us, callback, process)

    def run_until(self, when_us: int, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass up to `when_us`, or until the condition holds; says whether it does."""
        heap = self._heap
        while heap and heap[0][0] <= when_us:
            when, _, event = heappop(heap)
            callback = event.callback
            if callback is None:
                continue
            self.now_us = when
            self.dispatch(event.process, callback)
            if until is not None and until():
                return True
        self.now_us = max(self.now_us, when_us)
        return until() if until is not None else True

    def dispatch(self, process: Process | None, callback: Callable[[], None]) -> None:
        """One turn of a process: the callback, then everything it wanted done soon."""
        if process is None:
            callback()
            self.events += 1
            return
        if not process.alive:
            return
        if process.frozen:
            process.kept.append(callback)
            return
        self.events += 1
        callback()
        soon = process.soon
        while soon and process.alive:
            soon.popleft()()
        if self.after_event is not None:
            self.after_event(process)

    def thaw(self, process: Process) -> None:
        """A frozen process goes on: what came up meanwhile happens now, in order."""
        process.frozen = False
        kept, process.kept = process.kept, []
        for callback in kept:
            self.after(0, callback, process)
