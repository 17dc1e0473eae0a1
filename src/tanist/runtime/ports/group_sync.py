"""Group commit: syncs in a few threads, one running at most for each file, and each serving all who asked before it
began.

While the threads are busy, wishes gather; a thread that comes free takes its share of all of them. So a node may ask
for a sync with every turn, and the disk decides by its own speed how many there are (measured: one sync per request
is 16 times slower).

A file whose sync has failed once never syncs again: after an error the kernel drops the dirty pages, and the next
`fsync` would report a success that is none. The node has to give the folder up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tanist.runtime.ports.files import DiskFile
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.workers import Workers

SYNC_THREADS = 2

Done = Callable[[OSError | None], None]


class _Wish:
    """One call of `sync`: how many files it still waits for."""

    __slots__ = ("done", "error", "left")

    def __init__(self, left: int, done: Done) -> None:
        self.left = left
        self.error: OSError | None = None
        self.done = done


class GroupSync:
    """The syncs of one disk."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._workers = Workers(loop, "sync", SYNC_THREADS)
        self._wishes: dict[DiskFile, list[_Wish]] = {}
        """Files to be synced by the next run, each with those who asked."""
        self._running: dict[DiskFile, list[_Wish]] = {}
        loop.add_hook(self._start)

    def sync(self, files: Sequence[DiskFile], done: Done) -> None:
        if not files:
            self._loop.post(partial(done, None))
            return
        wish = _Wish(len(files), done)
        for file in files:
            file.pin()
            self._wishes.setdefault(file, []).append(wish)
        self._loop.wake_hooks()

    def close(self) -> None:
        """Wait for the syncs that run; their callbacks are not called any more."""
        self._workers.close()

    def _start(self) -> None:
        """At the end of a turn: give what is wished for to the threads that are free."""
        wishes, free = self._wishes, self._workers.free
        if not wishes or not free:
            return
        ready = [file for file in wishes if file not in self._running]
        for number in range(min(free, len(ready))):
            share = ready[number::free]
            for file in share:
                self._running[file] = wishes.pop(file)
                file.sync_begins()
            self._workers.submit(partial(_sync_all, share), partial(self._finish, share))

    def _finish(self, share: list[DiskFile], errors: list[OSError | None] | BaseException) -> None:
        if isinstance(errors, BaseException):
            raise errors
        for file, error in zip(share, errors, strict=True):
            if error is None:
                file.sync_succeeded()
            else:
                file.failure = error
            for wish in self._running.pop(file):
                file.unpin()
                wish.left -= 1
                wish.error = wish.error or error
                if wish.left == 0:
                    self._loop.call_soon(partial(wish.done, wish.error))
        self._loop.wake_hooks()


def _sync_all(share: list[DiskFile]) -> list[OSError | None]:
    """In a thread. One file's failure does not spare the others."""
    errors: list[OSError | None] = []
    for file in share:
        error = file.failure
        if error is None:
            try:
                file.sync_blocking()
            except OSError as failure:
                error = failure
        errors.append(error)
    return errors
