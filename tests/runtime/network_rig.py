"""A network that listens, and plain blocking sockets as its clients, for the tests of sockets."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

from tanist.ports import Connection
from tanist.runtime.ports.network import SocketNetwork


class Handler:
    def __init__(
        self, connection: Connection | None = None, on: Callable[[Handler, bytes], None] | None = None
    ) -> None:
        self.connection: Any = connection
        self.frames: list[bytes] = []
        self.closed: list[str] = []
        self._on = on

    def on_open(self, connection: Connection) -> None:
        self.connection = connection

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        if self._on is not None:
            self._on(self, self.frames[-1])

    def on_close(self, reason: str) -> None:
        self.closed.append(reason)


class Server:
    """A network that listens, its handlers, and plain blocking sockets as clients."""

    def __init__(self, runner: Any, on: Callable[[Handler, bytes], None] | None = None, **options: Any) -> None:
        self.runner = runner
        self.exhausted: list[tuple[int, str]] = []
        self.network = SocketNetwork(runner.loop, on_exhausted=lambda *why: self.exhausted.append(why), **options)
        self.handlers: list[Handler] = []
        self._on = on
        self.listener = self.network.bind("127.0.0.1", 0, self._accept, max_frame_bytes=1 << 24)
        self.listener.open()

    def _accept(self, connection: Connection) -> Handler:
        handler = Handler(connection, self._on)
        self.handlers.append(handler)
        return handler

    def client(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.listener.port), timeout=120)


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def sending(client: socket.socket, data: bytes) -> Callable[[], bool]:
    """A condition to run the loop until: each look sends what the socket takes; True once all of it is sent."""
    client.setblocking(False)
    left = memoryview(data)

    def all_sent() -> bool:
        nonlocal left
        try:
            while left:
                left = left[client.send(left) :]
        except BlockingIOError:
            return False
        return True

    return all_sent
