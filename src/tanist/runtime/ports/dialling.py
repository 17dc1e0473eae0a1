"""Dialling: trying the addresses of a name one after the other, each for a while, until one answers.

Owns the sockets of attempts, and their timer. The caller gets a connected socket, or the reason why there is none,
once, unless it has cancelled.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tanist.runtime.ports.descriptors import opening

if TYPE_CHECKING:
    from tanist.runtime.ports.loop import Loop
    from tanist.runtime.ports.socket_address import SocketAddress

_UNDER_WAY = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY})


class Dialling:
    """One attempt after the other."""

    __slots__ = ("_connected", "_failed", "_left", "_loop", "_sock", "_timeout_ms", "_timer")

    def __init__(
        self,
        loop: Loop,
        addresses: Sequence[SocketAddress],
        timeout_ms: int,
        connected: Callable[[socket.socket], None],
        failed: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._left = list(addresses[::-1])
        self._timeout_ms = timeout_ms
        self._connected = connected
        self._failed = failed
        self._sock: socket.socket | None = None
        self._timer: Any = None

    def next(self, reason: str = "no address") -> None:
        """Try the next address; `reason` is why the last one was in vain."""
        if not self._left:
            self._failed(reason)
            return
        family, address = self._left.pop()
        try:
            sock = opening(lambda: socket.socket(family, socket.SOCK_STREAM))
        except OSError as error:
            self._failed(f"cannot open a socket: {error.strerror or error}")
            return
        sock.setblocking(False)
        code = sock.connect_ex(address)
        if code not in _UNDER_WAY:
            sock.close()
            self.next(os.strerror(code))
            return
        self._sock = sock
        self._loop.aio.add_writer(sock.fileno(), self._handle_connected)
        self._timer = self._loop.call_at(self._loop.now_ms() + self._timeout_ms, self._timed_out)

    def cancel(self) -> None:
        """Nobody wants it any more."""
        self._left.clear()
        sock = self._take()
        if sock is not None:
            sock.close()

    def _handle_connected(self) -> None:
        sock = self._take()
        if sock is None:
            return
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0 and sock.getsockname() == sock.getpeername():
            code = errno.ECONNREFUSED  # TCP met itself on an ephemeral port: nobody is listening
        if code:
            sock.close()
            self.next(os.strerror(code))
        else:
            self._connected(sock)

    def _timed_out(self) -> None:
        sock = self._take()
        if sock is not None:
            sock.close()
        self.next(f"no answer within {self._timeout_ms} ms")

    def _take(self) -> socket.socket | None:
        """The socket of the attempt that is under way, which ends."""
        sock, self._sock = self._sock, None
        if sock is not None:
            self._loop.aio.remove_writer(sock.fileno())
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        return sock
