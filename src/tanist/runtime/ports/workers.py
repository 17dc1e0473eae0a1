"""A few threads that do what would block the loop, and bring what came of it back to the loop.

Threads start when there is first something to do. The queue's bound is the caller's: the disk gives out at most one
sync job per free thread, and the node counts its own background jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from tanist.runtime.ports.loop import Loop

T = TypeVar("T")

_Job = tuple[Callable[[], Any], Callable[[Any], None]]


class Workers:
    """`limit` threads and their queue. Used from the loop's thread only."""

    def __init__(self, loop: Loop, name: str, limit: int) -> None:
        self._loop = loop
        self._name = name
        self._limit = limit
        self._threads: list[threading.Thread] = []
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._busy = 0
        self._closed = False

    @property
    def free(self) -> int:
        """Threads with nothing to do and nothing waiting for them."""
        return max(0, self._limit - self._busy)

    @property
    def busy(self) -> int:
        """Jobs that run or wait."""
        return self._busy

    def submit(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        """Run `job` in a thread; then `done`, in a later turn of the loop, with its result or what it raised."""
        if self._closed:
            raise RuntimeError(f"the {self._name} threads are closed")
        self._busy += 1
        if self._busy > len(self._threads) and len(self._threads) < self._limit:
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._queue.put((job, done))

    def close(self) -> None:
        """Let the threads finish what they have begun or been given, then end them."""
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _work(self) -> None:
        while (entry := self._queue.get()) is not None:
            job, done = entry
            result: Any
            try:
                result = job()
            except BaseException as error:
                result = error
            self._loop.post_from_thread(partial(self._finish, done, result))

    def _finish(self, done: Callable[[Any], None], result: Any) -> None:
        self._busy -= 1
        done(result)
