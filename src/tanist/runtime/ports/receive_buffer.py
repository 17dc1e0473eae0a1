"""The receive buffer of one connection: it starts small, grows while the traffic needs it and shrinks when it does not.

Owns the memory and its positions, and decides its size. A buffer is replaced, never resized, so memory that was lent to
a handler stays valid. It must never size a buffer by what a peer merely declares: a buffer is at most `_TRUST` times
what has arrived.
"""

from __future__ import annotations

RECEIVE_BYTES_MIN = 4096
RECEIVE_BYTES_KEPT = 65_536
"""As far as a buffer grows because there is much to read; beyond it only for a frame that is bigger."""

_TRUST = 8


class ReceiveBuffer:
    """Bytes `[read, written)` have arrived and were not delivered; both are 0 when all were.

    The connection moves the positions itself: a method call for each frame would show.
    """

    __slots__ = ("peak", "read", "view", "wanted", "written")

    def __init__(self) -> None:
        self.view: memoryview | None = None
        """None while there is nothing to hold."""
        self.read = 0
        self.written = 0
        self.wanted = 0
        """Bytes of the frame at `read`, its length included, once they are known; else 0."""
        self.peak = 0
        """The most that `written` was since the last `idle_size`."""

    def has_space(self) -> bool:
        """Whether the rest of the frame fits behind what is there."""
        view = self.view
        if view is None:
            return False
        read, written, wanted = self.read, self.written, self.wanted
        return read < written < len(view) and read + max(wanted, 4) <= len(view)

    def needed_size(self) -> int:
        """The size of a buffer to replace this one before more is received; 0: this one is large enough."""
        view = self.view
        if view is None:
            return RECEIVE_BYTES_MIN
        capacity, left = len(view), self.written - self.read
        if self.wanted > capacity:
            return min(self.wanted, max(RECEIVE_BYTES_KEPT, _TRUST * left))
        if self.written == capacity and left < capacity < RECEIVE_BYTES_KEPT:
            return capacity * 4  # the last recv filled it: there is more where that came from
        return 0

    def idle_size(self) -> int | None:
        """The size that the traffic since the last call can do with, None if the present one is right; 0: no buffer."""
        view = self.view
        if view is None:
            return None
        peak, self.peak = self.peak, 0
        if self.read != self.written:
            return None
        if peak == 0:
            return 0
        return max(RECEIVE_BYTES_MIN, 1 << (peak - 1).bit_length()) if peak * 4 <= len(view) else None

    def replace(self, size: int) -> memoryview:
        """A new buffer, with what has not been delivered at its start."""
        read, written = self.read, self.written
        buffer = bytearray(size)
        if written > read and self.view is not None:
            buffer[: written - read] = self.view[read:written]
        self.view = view = memoryview(buffer)
        self.read = 0
        self.written = written - read
        return view

    def rewind(self, view: memoryview) -> None:
        """Move what has not been delivered to the start: the memory before it is written over."""
        left = self.written - self.read
        if left:
            view[:left] = view[self.read : self.written]
        self.read = 0
        self.written = left

    def release(self) -> None:
        self.view = None
        self.read = self.written = 0
