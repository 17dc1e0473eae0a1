"""A large write that a thread makes, or the loop if it cannot wait for the thread.

Copying a megabyte into the page cache takes the kernel 0.2 to 2.4 ms, for it may have to find the memory first; and
when much has not reached the disk yet, it stops who writes for up to 200 ms. Who wants the bytes in the file before
the thread has begun writes them itself.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tanist.ports import Buffer, File
from tanist.runtime.ports.bulk import BULK_BYTES

LARGE_WRITE_BYTES = BULK_BYTES + 1
"""Less is written before a thread has woken. Frames of so many bytes have turns of their own."""


class RealLateWrite:
    """`ports.LateWrite`, for two threads."""

    __slots__ = ("_buffers", "_error", "_file", "_lock", "_offset")

    def __init__(self, file: File, offset: int, buffers: Sequence[Buffer]) -> None:
        self._lock = threading.Lock()
        self._file = file
        self._offset = offset
        self._buffers: Sequence[Buffer] | None = buffers
        """None once they are written."""
        self._error: OSError | None = None

    def finish(self) -> None:
        """Of two who call it, one writes and the other waits."""
        with self._lock:
            buffers, self._buffers = self._buffers, None
            if buffers is not None:
                try:
                    self._file.write(self._offset, buffers)
                except OSError as error:
                    self._error = error
            if self._error is not None:
                raise self._error
