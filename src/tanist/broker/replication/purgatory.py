"""Requests that wait: for a condition that some event will bring, or for their deadline.

One heap of deadlines and one timer serve every waiting request of a node; a request costs no task, future or timer of
its own. The condition side lives with the object that the request waits for (a partition's lists of waiters); the
side that completes a request first sets `done`, and the other side then skips it.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol

from tanist.ports import Clock, Timer


class Waiter(Protocol):
    """A request in the purgatory."""

    done: bool

    def expire(self) -> None:
        """The deadline has come and the request is not done: answer it with what there is."""


class Purgatory:
    """Deadlines of waiting requests, kept by the node's clock."""

    __slots__ = ("_armed_at_ms", "_clock", "_heap", "_sequence", "_timer")

    # Completed requests stay in the heap until their deadline; past this size, and when the heap has doubled since it
    # was last swept, they are swept out, so that memory follows the requests that really wait.
    _SWEEP_SIZE = 4096

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Waiter]] = []
        self._sequence = 0
        self._timer: Timer | None = None
        self._armed_at_ms = 0

    def __len__(self) -> int:
        return sum(1 for _, _, waiter in self._heap if not waiter.done)

    def waiting(self) -> Iterator[Waiter]:
        """The requests that wait, in no order."""
        return (waiter for _, _, waiter in self._heap if not waiter.done)

    def add(self, deadline_ms: int, waiter: Waiter) -> None:
        """Promise to call `waiter.expire()` at `deadline_ms` unless it is done by then."""
        heap = self._heap
        if len(heap) >= self._SWEEP_SIZE and len(heap) & (len(heap) - 1) == 0:
            self._heap = heap = [entry for entry in heap if not entry[2].done]
            heapify(heap)
        self._sequence += 1
        heappush(heap, (deadline_ms, self._sequence, waiter))
        if self._timer is None or deadline_ms < self._armed_at_ms:
            self._arm(deadline_ms)

    def _arm(self, when_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_at_ms = when_ms
        self._timer = self._clock.call_at(when_ms, self._expire)

    def _expire(self) -> None:
        self._timer = None
        heap = self._heap
        now_ms = self._clock.now_ms()
        while heap and (heap[0][2].done or heap[0][0] <= now_ms):
            waiter = heappop(heap)[2]
            if not waiter.done:
                waiter.expire()
            heap = self._heap
        if heap and self._timer is None:
            self._arm(heap[0][0])

    def clear(self) -> None:
        """Forget all. The node is going down; its connections close with it."""
        self._heap = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
