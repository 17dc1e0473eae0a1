"""The queue of all future events, in microseconds of virtual time.

Events of one instant run in the order in which they were scheduled; nothing else (no hash order, no real time) may
decide an order. An event belongs to the world or to a process. The events of a dead process do not run; those of a
frozen process run when it continues.

A *turn* is the work of a process between two waits for input: one callback, and all callbacks that it scheduled for
soon. After each turn `after_turn` is called, which checks safety.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush

MICROSECONDS = 1000
"""Per millisecond."""

_CANCELLED_MAX = 1024
"""Cancelled events that may lie in the queue before it is rebuilt (if they are also more than half of it)."""


class CrashPoint(BaseException):
    """The process dies here, in the middle of a turn. Not an `Exception`, so that no code of the node survives it."""


class Process:
    """One life of a process: its events end with it."""

    __slots__ = ("alive", "crashed", "failed", "frozen", "fuse", "kept", "name", "plant", "soon")

    def __init__(
        self,
        name: str,
        crashed: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        self.name = name
        self.alive = True
        self.frozen = False
        self.kept: list[Event] = []
        """Events that are due for a frozen process."""
        self.soon: deque[Callable[[], None]] = deque()
        self.fuse = -1
        """The process dies in the n-th change to its disk; -1: it does not."""
        self.crashed = crashed
        """Called when the process has ended in the middle of a turn, after the interrupted turn."""
        self.plant: Callable[[Callable[[], None]], None] | None = None
        """Runs each turn, in which it may raise an exception."""
        self.failed = failed
        """Called with an exception that came through to the loop; without it, it ends the run."""

    @property
    def runs(self) -> bool:
        return self.alive and not self.frozen

    def end(self) -> None:
        """Dead, with all its scheduled callbacks."""
        self.alive = False
        self.soon.clear()
        self.kept.clear()

    def burn(self, halfway: Callable[[], None] | None = None) -> None:
        """The process will change its disk. If it dies in the attempt, `halfway` makes the partial change."""
        if not self.alive:
            raise CrashPoint  # code that unwinds after a crash
        if self.fuse >= 0:
            self.fuse -= 1
            if self.fuse < 0:
                if halfway is not None:
                    halfway()
                self.end()
                raise CrashPoint


def _run_turn(process: Process, callback: Callable[[], None]) -> None:
    callback()
    soon = process.soon
    while soon:
        soon.popleft()()


class Event:
    """A scheduled callback that can be called off."""

    __slots__ = ("callback", "process", "scheduler")

    def __init__(self, scheduler: Scheduler, process: Process | None, callback: Callable[[], None]) -> None:
        self.scheduler = scheduler
        self.process = process
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self.scheduler.cancelled += 1


class Scheduler:
    """Runs events in order of time, then of scheduling."""

    def __init__(self) -> None:
        self.now_us = 0
        self.events = 0
        self.cancelled = 0
        self.after_turn: Callable[[Process], None] | None = None
        self._heap: list[tuple[int, int, Event]] = []
        self._sequence = 0

    def at(self, when_us: int, callback: Callable[[], None], process: Process | None = None) -> Event:
        """Schedule; an instant that has passed means now."""
        event = Event(self, process, callback)
        self._sequence += 1
        heappush(self._heap, (when_us if when_us > self.now_us else self.now_us, self._sequence, event))
        if self.cancelled > _CANCELLED_MAX and self.cancelled * 2 > len(self._heap):
            self._forget_cancelled()
        return event

    def after(self, delay_us: int, callback: Callable[[], None], process: Process | None = None) -> Event:
        return self.at(self.now_us + delay_us, callback, process)

    def run_until(self, when_us: int) -> None:
        """Let time pass up to `when_us`."""
        heap = self._heap
        while heap and heap[0][0] <= when_us:
            when, _, event = heappop(heap)
            callback = event.callback
            if callback is None:
                self.cancelled -= 1
                continue
            self.now_us = when
            self.events += 1
            process = event.process
            if process is not None and process.alive and process.frozen:
                process.kept.append(event)
                continue
            event.callback = None
            if process is None:
                callback()
            else:
                self.dispatch(process, callback)
        self.now_us = max(self.now_us, when_us)

    def dispatch(self, process: Process, callback: Callable[[], None]) -> None:
        """One turn of a process."""
        if not process.alive:
            return
        if process.frozen:
            process.kept.append(Event(self, process, callback))
            return
        try:
            if process.plant is None:
                _run_turn(process, callback)
            else:
                process.plant(lambda: _run_turn(process, callback))
        except CrashPoint:
            if process.crashed is not None:
                process.crashed()
            return
        except Exception as error:
            if process.failed is None:
                raise
            process.failed(error)
            return
        if process.alive and self.after_turn is not None:
            # Who looks may make the process open a file anew: that is no change of its own.
            fuse, process.fuse = process.fuse, -1
            self.after_turn(process)
            process.fuse = fuse

    def thaw(self, process: Process) -> None:
        """A frozen process continues: its due events run now, in order, each in a turn of its own.

        One of them may yet call another off, as with real clocks.
        """
        process.frozen = False
        kept, process.kept = process.kept, []
        for event in kept:
            self._sequence += 1
            heappush(self._heap, (self.now_us, self._sequence, event))

    def _forget_cancelled(self) -> None:
        self._heap[:] = [entry for entry in self._heap if entry[2].callback is not None]
        heapify(self._heap)
        self.cancelled = 0
