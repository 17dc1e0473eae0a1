"""File descriptors: how many the process may have, who gets them, and a few kept back for when they run out.

Half of them are for accepted connections (`network`). Files have the other half, but for what a node needs to go on:
with none left it could not roll a log, write a vote or call another node. So some are held in reserve. A part that must
open something says so with `opening`: if the system refuses, one of the reserve is given back to it and the call is
made again; the reserve is filled up when something was closed. Logs that can wait are not opened when the files' half
is full, so that a client can always connect to delete something. It must never hold back an error that has
another cause.

One process has one table of descriptors, so this module has one reserve.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from tanist.ports import is_descriptor_shortage

T = TypeVar("T")

NEEDED = 256
"""Below that a node does not start: its own files and connections, a few clients, fifty partitions of offsets."""
PLENTY = 4096
"""Below that a node says at its start what is enough for how much."""

TABLE_MAX = 16_384
"""More of them come later, one doubling of the table at a time."""

_RESERVED = 24
_OTHERS = 32
"""The process's own, and its connections to other nodes."""
_REFILL_EVERY_S = 0.2


def limits() -> tuple[int, int]:
    """How many the process may have, and how many it could give itself. Without a limit: a very high number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _number(soft), _number(hard)


def raise_limit() -> int:
    """As many as the system lets us have; gives their number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS says "unlimited" and means less
            return _number(soft)
    return _number(hard)


def widen_table() -> None:
    """Have the kernel make the process's table of descriptors large, while there is one thread.

    It doubles the table as it fills, and waits for all processors then if there are threads (`synchronize_rcu`): 5 to
    15 ms in which the loop stands still, eight times for five thousand clients. The table takes 8 bytes a descriptor.
    """
    with suppress(OSError):
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            os.close(fcntl.fcntl(null, fcntl.F_DUPFD, min(limits()[0], TABLE_MAX) - 1))
        finally:
            os.close(null)


def too_few() -> str | None:
    """Why no node can be started with these limits, and what to do; None if one can."""
    highest = limits()[1]
    if highest >= NEEDED:
        return None
    return f"the limit of open files is {highest}, and a node needs {NEEDED}: `ulimit -n {PLENTY}`, then try again"


class Reserve:
    """Descriptors kept back. May be used from any thread: it only ever appends to a list and pops from it."""

    def __init__(self, size: int, on_short: Callable[[], None] = lambda: None) -> None:
        self._size = size
        self._spare: list[int] = []
        self._on_short = on_short
        self._looked_at = 0.0
        self._short = False
        self._fill()

    def opening(self, call: Callable[[], T]) -> T:
        """The result of the call; with a descriptor of the reserve if there is no other. The call must leave nothing
        open that it does not give."""
        while True:
            try:
                return call()
            except OSError as error:
                if not is_descriptor_shortage(error) or not self._give_back():
                    raise

    @property
    def short(self) -> bool:
        """Whether some of the reserve is in use, or has been a moment ago."""
        now = time.monotonic()
        if self._short and now - self._looked_at >= _REFILL_EVERY_S:
            self._looked_at = now
            self._fill()
            self._short = len(self._spare) < self._size
        return self._short

    def close(self) -> None:
        self._size = 0
        while self._give_back():
            pass

    def _give_back(self) -> bool:
        try:
            os.close(self._spare.pop())
        except IndexError:
            return False
        if self._size and not self._short:
            self._short = True
            self._looked_at = time.monotonic()
            self._on_short()
        return True

    def _fill(self) -> None:
        try:
            while len(self._spare) < self._size:
                self._spare.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            if not is_descriptor_shortage(error):
                raise


_reserve = Reserve(0)
_files_max: int | None = None


def keep_reserve(number: int, on_short: Callable[[], None]) -> None:
    """Hold descriptors back from now on, of so many; `on_short` is called when they come to be used, perhaps in another
    thread."""
    global _reserve, _files_max
    _reserve.close()
    _reserve = Reserve(_RESERVED, on_short)
    _files_max = number // 2 - _RESERVED - _OTHERS


def opening(call: Callable[[], T]) -> T:
    """See `Reserve.opening`. Without a reserve it is just the call. The error names the limit."""
    try:
        return _reserve.opening(call)
    except OSError as error:
        if error.errno == errno.EMFILE:
            error.strerror = f"Too many open files (the limit is {limits()[0]}: raise it with `ulimit -n`)"
        raise


def is_crowded(files: int) -> bool:
    """Whether so many open files are as many as there should be."""
    return _reserve.short or (_files_max is not None and files >= _files_max)


def _number(limit: int) -> int:
    return limit if 0 <= limit < 1 << 20 else 1 << 20
