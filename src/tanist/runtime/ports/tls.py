"""One TLS connection: `SocketConnection` with an `SSLObject` between the socket and the frames.

In: what the socket has goes through one shared buffer into the SSLObject, and from there, decrypted, into the receive
buffer. Where the buffer is full and bytes are left inside, no event of the socket tells of them: the connection comes
back for them. Out: `cipher_queue`. The handshake comes first (`handshakes`): until it is done there is no handler, no
receive buffer, and nothing of `send` leaves.

The socket below may be exchanged (faults of links): the state of TLS is not the socket's.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from tanist.ports import Chunk
from tanist.runtime.ports.cipher_queue import CIPHER_BYTES_MAX, STEP_BYTES, CipherQueue
from tanist.runtime.ports.connection import ConnectionOwner, SocketConnection, not_open
from tanist.runtime.ports.handshakes import Handshake, Handshakes
from tanist.runtime.security.words import in_words

_RECEIVED_BYTES: Final = 65_536
_RECEIVES_MAX: Final = 4
"""How often the socket is read for one event."""

_received = memoryview(bytearray(_RECEIVED_BYTES))
"""What a socket has given, on its way into an SSLObject. Nothing is kept in it."""


class TlsConnection(SocketConnection):
    """The `Connection` port on a socket with TLS."""

    __slots__ = (
        "_cipher_queue", "_comes_back", "_handshake", "_handshakes", "_host", "_identity", "_incoming", "_left_inside",
        "_opened_with", "_outgoing", "_profile", "_raw_recv_into", "_tls", "_tls_read",
    )  # fmt: skip

    def __init__(
        self,
        network: ConnectionOwner,
        handshakes: Handshakes,
        peer: Any,
        max_frame_bytes: int,
        profile: str,
        opened: Callable[[TlsConnection], None] | None = None,
        host: str | None = None,
    ) -> None:
        """`opened`: called when the handshake of an accepted connection is done. `host`: the one that was dialled."""
        super().__init__(network, peer, max_frame_bytes)
        self._queue = self._cipher_queue = CipherQueue(network.cold_reads)
        self._out = self._queue.chunks
        self._handshakes = handshakes
        self._handshake: Handshake | None = None
        self._profile = profile
        self._opened_with = opened
        self._host = host
        self._identity: str | None = None
        self._tls: ssl.SSLObject | None = None
        """Once the handshake is done."""
        self._tls_read: Callable[[int, memoryview], int] = not_open
        self._incoming = self._outgoing = ssl.MemoryBIO()
        self._raw_recv_into: Callable[[memoryview], int] = not_open
        self._left_inside = False
        """Bytes have come that the socket knows nothing of any more."""
        self._comes_back = False

    # -- Connection

    @property
    def peer_identity(self) -> str | None:
        return self._identity

    @property
    def pending_bytes(self) -> int:
        return self._queue.pending_bytes + len(self._cipher_queue.cipher)

    def send(self, chunks: Sequence[Chunk]) -> None:
        queue = self._cipher_queue
        if self._out or self._tls is None or queue.cipher:
            if not self._closed:
                self._enqueue(chunks)
            return
        if len(chunks) == 1 and type(chunks[0]) is bytes and len(chunks[0]) <= STEP_BYTES:
            data: Any = chunks[0]
        else:
            data = queue.gathered(chunks)
        if data is None:
            self._enqueue(chunks)
            self._flush()
            return
        try:
            queue.cipher = queue.seal(data)
        except ssl.SSLError as error:
            self.end(f"cannot encrypt: {error.reason or error}")
            return
        self.push()

    def resume(self) -> None:
        super().resume()
        if self._left_inside:
            self._come_back()

    # -- from the network

    def open_with(self, sock: socket.socket) -> None:
        self._handshake = Handshake(self._handshakes, self, self._profile, self._host)
        super().open_with(sock)

    def _connected(self, sock: socket.socket) -> None:
        self._dialling = None
        self.open_with(sock)
        if self._handshake is not None:
            self._handshake.say_hello()

    def _bind(self, sock: socket.socket) -> None:
        super()._bind(sock)
        self._raw_recv_into, self._recv_into = self._recv_into, self._decrypt_into

    def established(
        self, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, identity: str | None
    ) -> None:
        """The handshake is done."""
        self._handshake = None
        self._tls, self._incoming, self._outgoing, self._identity = tls, incoming, outgoing, identity
        self._tls_read = tls.read  # type: ignore[assignment]
        self._cipher_queue.open(tls.write, outgoing)
        self._left_inside = incoming.pending > 0 or tls.pending() > 0
        opened, self._opened_with = self._opened_with, None
        if opened is not None:
            opened(self)
        else:
            self._announce()
        if self._left_inside and self._open:
            self._come_back()

    def end(self, reason: str) -> None:
        if not self._closed:
            handshake, self._handshake = self._handshake, None
            if handshake is not None:
                handshake.ended()
            self._say_goodbye()
        super().end(reason)

    def _say_goodbye(self) -> None:
        """Tell the other side that nothing more follows, if that needs no waiting."""
        tls, sock = self._tls, self._sock
        self._tls = None
        self._tls_read = self._raw_recv_into = not_open
        if tls is None or sock is None or self._cipher_queue.cipher:
            return
        with suppress(ssl.SSLError):
            tls.unwrap()
        with suppress(OSError):
            sock.send(self._outgoing.read())

    # -- for the handshake

    def receive(self) -> memoryview:
        """What the socket has; empty at its end. `BlockingIOError` if that is nothing, or another error of it."""
        return _received[: self._raw_recv_into(_received)]

    def watch(self, on: bool) -> None:
        """Look at the socket, or do not: a thread works on what has come."""
        if on and self._open:
            self._watch()
        elif self._reading:
            self._reading = False
            self._loop.aio.remove_reader(self._fd)

    def push(self, data: bytes = b"") -> None:
        """Hand the network what is encrypted, and `data` behind it; the rest waits."""
        queue = self._cipher_queue
        if data:
            queue.cipher = b"".join((queue.cipher, data)) if queue.cipher else data
        cipher = queue.cipher
        if len(cipher) > CIPHER_BYTES_MAX:
            self.end("it asks for new keys again and again, and does not read")
            return
        try:
            sent = self._sock_send(cipher) if cipher and not self._blocked else 0
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self.end(error.strerror or str(error))
            return
        if sent == len(cipher):
            queue.cipher = b""
        else:
            queue.cipher = memoryview(cipher)[sent:]
            if not self._blocked:
                self._block()

    def shut_down_sending(self) -> None:
        """Nothing more is sent; what the other side sends is still read, so that no reset takes the last words."""
        if self._sock is not None:
            with suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)

    # -- receiving

    def _on_readable(self) -> None:
        if self._handshake is not None:
            self._handshake.on_readable()
            return
        super()._on_readable()
        if self._left_inside:
            self._come_back()

    def _come_back(self) -> None:
        if not self._comes_back and not self._paused and self._open:
            self._comes_back = True
            self._loop.post(self._read_rest)

    def _read_rest(self) -> None:
        self._comes_back = False
        if self._left_inside and self._reading and not self._paused:
            self._on_readable()

    def _decrypt_into(self, view: memoryview) -> int:
        """In place of the socket's `recv_into`: as much as is there, and fits. 0 at the end of the stream."""
        incoming, read = self._incoming, self._tls_read
        size, got, receives = len(view), 0, 0
        inside, self._left_inside = self._left_inside, False
        while True:
            count = 0
            if not inside:
                try:
                    count = self._raw_recv_into(_received)
                except (BlockingIOError, InterruptedError):
                    if got:
                        return got
                    raise
                if not count:
                    return got  # if there was something, this is found again
                incoming.write(_received[:count])
                receives += 1
            inside = False
            try:
                while got < size:
                    taken = read(size - got, view[got:] if got else view)
                    if not taken:
                        self._left_inside = got > 0  # the end is found again
                        return got
                    got += taken
                    if not incoming.pending:
                        break
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                self.push(self._outgoing.read())  # the alert
                raise OSError(f"TLS: {in_words(error)}") from None
            if self._outgoing.pending:
                self.push(self._outgoing.read())  # new keys
            if got == size:
                self._left_inside = incoming.pending > 0 or (self._tls is not None and self._tls.pending() > 0)
                return got
            if count < _RECEIVED_BYTES or receives == _RECEIVES_MAX:
                if got:
                    return got
                if count:
                    raise BlockingIOError
