"""The real `Clock`: one event loop (uvloop, or asyncio where uvloop is absent), one heap of timers, one end of turn.

A *turn* is one pass of the loop: the input that is at hand is read and handed to the node, then the turn is
*finished*: the callbacks of `call_soon` run, then the turn's hooks (the disk starts its syncs, the network sends
what has gathered). So a burst of requests costs one write to each log and one system call to each connection.

It must never keep a task, a future or an event-loop timer per request: `call_at` is an entry in one heap, and at
most one loop timer is armed. It must never go on after a callback's error as if nothing had happened: what a callback
raises, and nobody has caught who knows what it may have torn, is given to `on_failure`, which ends a node's process.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from typing import Any

from tanist.broker.counters import Latency

OnFailure = Callable[[str, BaseException], None]

_ROUNDS_MAX = 32
"""How often one finish of a turn runs callbacks that callbacks asked for, before it lets input in again."""

_CANCELLED_MAX = 1024
"""Cancelled timers that may lie in the heap before it is rebuilt (if they are also more than half of it)."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class HeapTimer:
    """An entry of the heap; `callback` is None once it has run or was cancelled."""

    __slots__ = ("_loop", "callback", "sequence", "when_ms")

    def __init__(self, loop: Loop, when_ms: int, sequence: int, callback: Callable[[], None]) -> None:
        self._loop = loop
        self.when_ms = when_ms
        self.sequence = sequence
        self.callback: Callable[[], None] | None = callback

    def __lt__(self, other: HeapTimer) -> bool:
        return (self.when_ms, self.sequence) < (other.when_ms, other.sequence)

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._loop._timer_cancelled()


class Loop:
    """The `Clock` port, and what the other real ports stand on: file descriptors, hooks, posts from threads."""

    def __init__(self, on_failure: OnFailure | None = None, aio: asyncio.AbstractEventLoop | None = None) -> None:
        self.aio = aio if aio is not None else new_event_loop()
        self.on_failure = on_failure
        self.turn = 0
        """Counts finished turns. Memory that was lent to callbacks in turn n may be reused once `turn` has passed n."""
        self._soon: list[Callable[[], None]] = []
        self._hooks: list[Callable[[], None]] = []
        self._finish_scheduled = False
        self._timers: list[HeapTimer] = []
        self._sequence = 0
        self._cancelled = 0
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0
        if on_failure is not None:
            self.aio.set_exception_handler(self._failed_in_aio)
        self.lateness = Latency()
        """How late timers were: as long as the turn before them took, at least."""

    # -- Clock

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def call_at(self, when_ms: int, callback: Callable[[], None]) -> HeapTimer:
        self._sequence += 1
        timer = HeapTimer(self, when_ms, self._sequence, callback)
        heapq.heappush(self._timers, timer)
        if self._armed is None or when_ms < self._armed_ms:
            self._arm(when_ms)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)
        if not self._finish_scheduled:
            self._finish_scheduled = True
            self.aio.call_soon(self._finish_scheduled_turn)

    # -- for the other real ports

    def add_hook(self, hook: Callable[[], None]) -> None:
        """Run `hook` each time a turn is finished, after its callbacks. Cheap, please, when there is nothing to do."""
        self._hooks.append(hook)

    def wake_hooks(self) -> None:
        """See to it that the present turn is finished, and so the hooks run."""
        if not self._finish_scheduled:
            self._finish_scheduled = True
            self.aio.call_soon(self._finish_scheduled_turn)

    def finish_turn(self) -> None:
        """Run the callbacks and hooks now: a caller that lent memory to callbacks does this before it reuses it."""
        scheduled, self._finish_scheduled = self._finish_scheduled, True  # what callbacks ask for is done right here
        rounds = 0
        while self._soon and rounds < _ROUNDS_MAX:
            callbacks, self._soon = self._soon, []
            rounds += 1
            for callback in callbacks:
                try:
                    callback()
                except Exception as error:
                    self.failed("callback", error)
        self._finish_scheduled = scheduled
        for hook in self._hooks:
            hook()
        self.turn += 1
        if self._soon:
            self.wake_hooks()

    def post(self, callback: Callable[[], None]) -> None:
        """Run `callback` in a later turn. From the loop's own thread only."""
        self.aio.call_soon(self._guarded, callback)

    def post_from_thread(self, callback: Callable[[], None]) -> None:
        """Run `callback` in a later turn; from any thread. A loop that is closed by then drops it."""
        try:
            self.aio.call_soon_threadsafe(self._guarded, callback)
        except RuntimeError:
            if not self.aio.is_closed():
                raise

    def failed(self, where: str, error: BaseException) -> None:
        """A callback raised: tell `on_failure`; without one the error goes to the event loop's own handler."""
        if self.on_failure is not None:
            self.on_failure(where, error)
        else:
            self.aio.call_exception_handler({"message": f"unhandled error in {where}", "exception": error})

    def _failed_in_aio(self, aio: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A hook, or a callback of the event loop's own, has raised."""
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.failed("the event loop", error)
        else:
            aio.default_exception_handler(context)

    def run(self) -> None:
        """Run until `stop`."""
        self.aio.run_forever()

    def stop(self) -> None:
        self.aio.stop()

    def close(self) -> None:
        """Forget timers and free the event loop; after `run` has returned."""
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        self._timers.clear()
        self._soon.clear()
        self._hooks.clear()
        self.aio.close()

    # -- inner

    def _guarded(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as error:
            self.failed("callback", error)

    def _finish_scheduled_turn(self) -> None:
        self._finish_scheduled = False
        self.finish_turn()

    def _arm(self, when_ms: int) -> None:
        if self._armed is not None:
            self._armed.cancel()
        delay_ms = max(0, when_ms - self.now_ms())
        self._armed_ms = when_ms
        self._armed = self.aio.call_later(delay_ms / 1000, self._run_due)

    def _run_due(self) -> None:
        """Run what was due when we began. Timers that callbacks add for now wait for the next pass: input gets in."""
        self._armed = None
        now_ms = self.now_ms()
        self.lateness.record(max(0, now_ms - self._armed_ms), now_ms)
        last = self._sequence
        timers = self._timers
        later: list[HeapTimer] = []
        while timers and timers[0].when_ms <= now_ms:
            timer = heapq.heappop(timers)
            callback = timer.callback
            if callback is None:
                self._cancelled = max(0, self._cancelled - 1)
            elif timer.sequence > last:
                later.append(timer)
            else:
                timer.callback = None
                try:
                    callback()
                except Exception as error:
                    self.failed("timer", error)
                timers = self._timers
        for timer in later:
            heapq.heappush(timers, timer)
        if timers and (self._armed is None or timers[0].when_ms < self._armed_ms):
            # Also when nothing was due: the loop's clock is coarser than ours, and may fire a millisecond early.
            self._arm(timers[0].when_ms)

    def _timer_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > _CANCELLED_MAX and self._cancelled * 2 > len(self._timers):
            self._timers = [timer for timer in self._timers if timer.callback is not None]
            heapq.heapify(self._timers)
            self._cancelled = 0
