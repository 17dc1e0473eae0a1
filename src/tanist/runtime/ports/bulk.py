"""Large transfers take part of a pass of the loop, so that small requests wait for one of them and not for all.

A *pass* reads what input there is, finishes the turn and sends. Fifty consumers that read megabytes, or a producer that
has a thousand of them in flight, would make it tens of milliseconds long. So, of all connections together,

* ranges of files beyond `BULK_BYTES` are sent up to `SENT_PER_PASS`; what is over waits for its socket to be looked at
  again, which is in the next pass;
* frames beyond `BULK_BYTES` are handed to their handlers one a pass, each in a turn of its own, after the turn of the
  smaller ones: its append is written when the small ones are written and answered.

A connection that is alone sends and receives as it would without.

A large write is made by a thread, or by the loop if it cannot wait for the thread (`RealLateWrite`). Copying a megabyte
into the page cache takes the kernel 0.2 to 2.4 ms, for it may have to find the memory first. When much has not reached
the disk yet, the kernel stops the writer for up to 200 ms.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from tanist.ports import Buffer, File, LateWrite

BULK_BYTES = 131_072
"""What is larger takes longer than all else that is done for a request."""

SENT_PER_PASS = 1 << 20
"""Some hundred microseconds."""


class PassingLoop(Protocol):
    """The loop, as it is used here."""

    def post(self, callback: Callable[[], None]) -> None: ...

    def finish_turn(self) -> None: ...


class Bulk:
    """The share of large transfers, of all connections of a network."""

    __slots__ = ("_frames", "_left", "_loop", "_renews")

    def __init__(self, loop: PassingLoop) -> None:
        self._loop = loop
        self._left = SENT_PER_PASS
        """Bytes of large ranges that may be sent in this pass; not above 0: none."""
        self._renews = False
        self._frames: deque[Callable[[], None]] = deque()
        """Each delivers one large frame."""

    def share_of(self, size: int) -> int:
        """Of a range of so many bytes, those that may be sent now; 0: none in this pass."""
        return size if size <= BULK_BYTES else max(0, min(size, self._left))

    def sent(self, size: int, count: int) -> None:
        """So many bytes of a range of this size were sent."""
        if size <= BULK_BYTES:
            return
        self._left -= count
        if not self._renews:
            self._renews = True
            self._loop.post(self._renew)

    def _renew(self) -> None:
        self._renews = False
        self._left = SENT_PER_PASS

    def deliver_later(self, deliver: Callable[[], None]) -> None:
        """Call `deliver`, which hands a large frame to its handler, when its turn has come."""
        if not self._frames:
            self._loop.post(self._deliver)
        self._frames.append(deliver)

    def _deliver(self) -> None:
        deliver = self._frames.popleft()
        if self._frames:
            self._loop.post(self._deliver)
        self._loop.finish_turn()  # the small ones first
        deliver()
        self._loop.finish_turn()


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
