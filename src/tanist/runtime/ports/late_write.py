"""A large write that a thread makes, or the loop if it cannot wait for the thread.

Copying a megabyte into the page cache takes the kernel 0.2 to 2.4 ms, for it may have to find the memory first; and
when much has not reached the disk yet, it stops who writes for up to 200 ms. Who wants the bytes in the file before
the thread has begun writes them itself.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tanist.ports import Buffer, File, LateWrite
from tanist.runtime.ports.bulk import BULK_BYTES

LARGE_WRITE_BYTES = BULK_BYTES + 1
"""Less is written before a thread has woken. Frames of so many bytes have turns of their own."""


class RealLateWrite(LateWrite):
    """`ports.LateWrite`, for two threads."""

    __slots__ = ("_lock",)

    def __init__(self, file: File, offset: int, buffers: Sequence[Buffer]) -> None:
        super().__init__(file, offset, buffers)
        self._lock = threading.Lock()

    def finish(self) -> None:
        """Of two who call it, one writes and the other waits."""
        with self._lock:
            super().finish()
