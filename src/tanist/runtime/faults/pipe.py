"""One direction of a connection that goes through a proxy: bytes from one socket to another, as a faulty link would
carry them.

The bytes arrive in order, each at its time: after the latency and the jitter, behind what the rate has not let through
yet. A pipe does not read from a link that is cut, so the sender's buffers fill up, as they do when no acknowledgement
arrives; the bytes that it had read are kept, and go on when the link is open again, as TCP would send them once more.

It must never hold more than `_WINDOW_BYTES`.
"""

from __future__ import annotations

import random
import socket
from collections import deque
from collections.abc import Callable

from tanist.runtime.faults.settings import CLEAR, LinkState
from tanist.runtime.ports.loop import HeapTimer, Loop

_CHUNK_BYTES = 65_536
_WINDOW_BYTES = 4 << 20
"""The most bytes on their way at a time; with a latency of 200 ms that is 20 MB/s, like a window of TCP."""
_UNHEARD_BYTES = 256 << 10
"""The most that a client which is cut off may send to a connection that it believes to be open."""


class Pipe:
    """From `source` to `target`. When the source has ended and all its bytes have passed, `on_end` gets the reason: an
    empty one is an orderly end."""

    def __init__(
        self,
        loop: Loop,
        source: socket.socket,
        target: socket.socket,
        on_end: Callable[[str], None],
        rng: random.Random,
        *,
        unheard: bool = False,
    ) -> None:
        self._loop = loop
        self._source = source
        self._target = target
        self._on_end = on_end
        self._rng = rng
        self._link = CLEAR
        self._queue: deque[tuple[float, bytes | memoryview | str]] = deque()
        """When it is due, and bytes, or the reason for the end."""
        self._held_bytes = 0
        self._line_free_ms = 0.0
        """When the last byte that was read will have been sent at the link's rate."""
        self._reading = False
        self._writing = False
        self._timer: HeapTimer | None = None
        self._ended = False
        self._void = False
        """The target takes nothing any more."""
        self._stopped = False
        self.unheard = unheard
        """Nothing has ever passed: though the link is cut, the pipe listens for the source's end."""

    @property
    def is_clear(self) -> bool:
        """Nothing is wrong with the link."""
        return self._link == CLEAR

    def set_state(self, link: LinkState) -> None:
        """The link has become better or worse, also for the bytes that are on their way."""
        if link != self._link:
            self._link = link
            under_way, self._queue = self._queue, deque()
            self._line_free_ms = 0.0
            for _, item in under_way:
                self._queue.append((self._due(item), item))
        self._go()

    def run_dry(self) -> bool:
        """Pass on what the target takes; True if the source has nothing more, has not ended, and nothing is held."""
        while not self._queue and not self._ended and not self._stopped:
            if not self._read():
                return not self._ended and not self._void and not self._queue
        self._go()  # what the target did not take waits until it can be written to
        return False

    def stop(self) -> None:
        """Let go of both sockets."""
        self._stopped = True
        self._queue.clear()
        self._watch(reading=False, writing=False)
        self._cancel_timer()

    # -- inner

    def _go(self) -> None:
        """Do now what is possible, and watch the sockets for the rest."""
        if self._stopped:
            return
        if not self._link.cut:
            self.unheard = False
            self._pass_on()
        if self._stopped:
            return
        limit = _UNHEARD_BYTES if self._link.cut else _WINDOW_BYTES
        hears = not self._link.cut or self.unheard
        blocked = bool(self._queue) and not self._link.cut and self._timer is None
        if self._link.cut:
            self._cancel_timer()
        self._watch(reading=hears and not self._ended and self._held_bytes < limit, writing=blocked)

    def _on_readable(self) -> None:
        self._read()
        self._go()

    def _read(self) -> bool:
        """Take in what is there; False if nothing is."""
        try:
            data = self._source.recv(_CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._end(error.strerror or str(error))
            return True
        if not data:
            self._end("")
        elif not self._void:
            self._queue.append((self._due(data), data))
            self._held_bytes += len(data)
            if not self._link.cut:
                self._pass_on()
        return True

    def _end(self, reason: str) -> None:
        self._ended = True
        if self.unheard:
            self._on_end(reason)
        else:
            self._queue.append((self._due(reason), reason))

    def _due(self, item: bytes | memoryview | str) -> float:
        """When it arrives, if it is sent now. It waits for what was sent before it: a stream has an order."""
        link = self._link
        now_ms = self._loop.now_ms()
        if link.rate_bytes and not isinstance(item, str):
            self._line_free_ms = max(self._line_free_ms, now_ms) + len(item) * 1000 / link.rate_bytes
        jitter_ms = self._rng.random() * link.jitter_ms if link.jitter_ms else 0
        return max(self._line_free_ms, now_ms) + link.latency_ms + jitter_ms

    def _pass_on(self) -> None:
        queue = self._queue
        self._cancel_timer()
        while queue:
            due_ms, item = queue[0]
            if due_ms > self._loop.now_ms():
                self._timer = self._loop.call_at(int(due_ms) + 1, self._on_due)
                return
            if isinstance(item, str):
                queue.popleft()
                self._on_end(item)
                return
            try:
                sent = self._target.send(item)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                # It is closed. The pipe in the other direction reports its end.
                self._void = True
                self._held_bytes = 0
                self._drop_bytes()
                continue
            self._held_bytes -= sent
            if sent == len(item):
                queue.popleft()
            else:
                queue[0] = (due_ms, memoryview(item)[sent:])

    def _drop_bytes(self) -> None:
        ends = [entry for entry in self._queue if isinstance(entry[1], str)]
        self._queue.clear()
        self._queue.extend(ends)

    def _on_due(self) -> None:
        self._timer = None
        self._go()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self, *, reading: bool, writing: bool) -> None:
        aio = self._loop.aio
        if reading != self._reading:
            self._reading = reading
            if reading:
                aio.add_reader(self._source.fileno(), self._on_readable)
            else:
                aio.remove_reader(self._source.fileno())
        if writing != self._writing:
            self._writing = writing
            if writing:
                aio.add_writer(self._target.fileno(), self._go)
            else:
                aio.remove_writer(self._target.fileno())
