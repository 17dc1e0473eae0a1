"""A call of the kernel for which Python has no function.

`cachestat` (Linux 6.5) counts the pages of a file that are in memory: some microseconds for a megabyte. An overlay file
system keeps its pages under another file and has none to count: a kernel that sees nothing of what was read a moment
ago is not asked again.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from typing import Any, Final

_CACHESTAT: Final = 451
"""Its number on all Linux machines but Alpha."""

_Words = ctypes.c_uint64 * 7
"""Offset and length, as asked; pages in memory, dirty, being written, evicted, recently evicted."""

_ANSWER_AT: Final = 16


def _system_call() -> Any:
    """`syscall` of the C library, or None. It keeps the interpreter's lock, for it never waits."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        call = ctypes.PyDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)
    call.restype = ctypes.c_long
    return call


class PageCache:
    """The kernel, as long as it can say. Any thread may ask."""

    def __init__(self) -> None:
        self._call = _system_call()
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    @property
    def answers(self) -> bool:
        """False: ask in another way."""
        return self._call is not None

    def has(self, fd: int, offset: int, length: int) -> bool:
        """Whether each page of a range is in memory, or on its way there. True if the kernel cannot say."""
        count = self._count(fd, offset, length)
        return count is None or count > (offset + length - 1) // self._page_bytes - offset // self._page_bytes

    def was_read(self, fd: int, offset: int, length: int) -> None:
        """A thread has read this range to its end: if the kernel sees nothing of it, it cannot say."""
        if self._count(fd, offset, length) == 0:
            self._call = None

    def _count(self, fd: int, offset: int, length: int) -> int | None:
        """The pages of a range that are in memory; None if the kernel cannot say."""
        call = self._call
        if call is None:
            return None
        words = _Words(offset, length)
        if call(_CACHESTAT, fd, ctypes.byref(words), ctypes.byref(words, _ANSWER_AT), 0) == 0:
            return words[2]
        if ctypes.get_errno() != errno.EBADF:  # (a file that was closed, which sending finds as well)
            self._call = None
        return None
