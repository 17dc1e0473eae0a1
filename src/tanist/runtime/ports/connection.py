"""One TCP connection: bytes in, frames out; chunks in, bytes out.

In: frames are views into the receive buffer (`receive_buffer`), several per `recv`. Before memory that a frame pointed
to is used again, the turn is finished, so that the callbacks that frames have scheduled have run (the promise of
`ConnectionHandler.on_frame`).

Out: `send` hands its chunks to the network at once, for a node sends what a turn has produced in one go. Answers that
are not large are gathered in one piece; larger ranges of files go by `sendfile`, and the bytes before them in the same
packets (MSG_MORE). Chunks that the network does not take wait (`send_queue`) for the socket to be writable.

The usual cases are short: one `recv` brings exactly one frame (`_on_readable`), and an answer is taken whole (`send`).
They leave the positions of the buffer and the queue alone; all other cases keep them. Large frames and ranges wait for
their share of a pass (`bulk`).
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tanist.ports import TLS_CLIENT, Chunk, ConnectionHandler, FileRange
from tanist.runtime.ports.bulk import BULK_BYTES, Bulk
from tanist.runtime.ports.cold_ranges import ColdReads
from tanist.runtime.ports.dialling import Dialling
from tanist.runtime.ports.files import DiskFile
from tanist.runtime.ports.receive_buffer import RECEIVE_BYTES_KEPT, RECEIVE_BYTES_MIN, ReceiveBuffer
from tanist.runtime.ports.send_queue import CannotSend, SendQueue
from tanist.text import host_port

if TYPE_CHECKING:
    from tanist.runtime.ports.loop import Loop
    from tanist.runtime.ports.socket_address import SocketAddress

_LENGTH = struct.Struct(">i")
_TLS_HELLO = 0x1603
"""How the first record of a TLS client begins: as a frame of 352 MB would."""


class ConnectionFaults(Protocol):
    """Faults of links: asked about a connection when it is dialled and when it is open, never later."""

    def delays(self, connection: SocketConnection, addresses: list[SocketAddress]) -> bool:
        """Whether it may not be dialled yet."""

    def opened(self, connection: SocketConnection) -> None: ...


class ConnectionOwner(Protocol):
    """The network that a connection belongs to, as the connection sees it."""

    loop: Loop
    bulk: Bulk
    cold_reads: ColdReads
    connect_timeout_ms: int
    faults: ConnectionFaults | None

    def forget(self, connection: SocketConnection) -> None:
        """It has closed."""

    def watch_buffer(self, connection: SocketConnection) -> None:
        """Its receive buffer has grown."""


class SocketConnection:
    """The `Connection` port on a raw socket."""

    __slots__ = (
        "_blocked", "_bulk", "_closed", "_dialling", "_fd", "_holds_frame", "_lent_turn", "_loop", "_max_frame_bytes",
        "_network", "_open", "_out", "_paused", "_peer", "_queue", "_reading", "_received", "_recv_into",
        "_small_frame_bytes", "_sock", "_sock_send", "_waits_for_disk", "accepted", "handler",
    )  # fmt: skip

    def __init__(self, network: ConnectionOwner, peer: Any, max_frame_bytes: int) -> None:
        self.handler: ConnectionHandler | None = None
        self.accepted = False
        self._network = network
        self._loop = network.loop
        self._bulk = network.bulk
        self._peer = peer
        self._max_frame_bytes = max_frame_bytes
        self._small_frame_bytes = min(max_frame_bytes, BULK_BYTES)
        self._sock: socket.socket | None = None
        self._fd = -1
        # Methods of the socket: bound once, they cost half.
        self._recv_into: Callable[[memoryview], int] = not_open
        self._sock_send: Callable[..., int] = not_open
        self._open = False
        self._closed = False
        self._reading = False
        self._paused = False
        self._dialling: Dialling | None = None
        self._received = ReceiveBuffer()
        self._lent_turn = -1
        self._holds_frame = False
        """A large frame has arrived, and waits to be delivered."""
        self._queue = SendQueue(network.cold_reads)
        self._out = self._queue.chunks
        """Looked at by each `send`."""
        self._blocked = False
        """Waiting for the socket to be writable."""
        self._waits_for_disk = False
        """A thread reads what is to be sent next."""

    # -- Connection

    @property
    def peer(self) -> str:
        peer = self._peer
        if not isinstance(peer, str):
            peer = host_port(peer[0], peer[1])
            self._peer = peer
        return peer

    @property
    def peer_identity(self) -> str | None:
        return None

    @property
    def pending_bytes(self) -> int:
        return self._queue.pending_bytes

    def send(self, chunks: Sequence[Chunk]) -> None:
        if self._out or not self._open:
            if not self._closed:
                self._enqueue(chunks)
            return
        data: Any = chunks[0] if len(chunks) == 1 else None
        if data is None or type(data) is FileRange:
            data = self._queue.gathered(chunks)
            if data is None:
                self._enqueue(chunks)
                self._flush()
                return
        try:
            sent = self._sock_send(data) if data else 0
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self.end(error.strerror or str(error))
            return
        if sent < len(data):
            self._keep(chunks, sent)

    def _keep(self, chunks: Sequence[Chunk], sent: int) -> None:
        """Queue what the network has not taken of these: all but `sent` bytes."""
        try:
            self._queue.keep(chunks, sent)
        except CannotSend as error:
            self.end(str(error))
        self._block()

    def _enqueue(self, chunks: Sequence[Chunk]) -> None:
        try:
            self._queue.add(chunks)
        except CannotSend as error:
            self.end(str(error))

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if not self._paused or self._closed:
            self._paused = False
            return
        self._paused = False
        if self._open:
            self._watch()
            if self._received.written - self._received.read >= 4:
                self._loop.post(self._deliver_again)

    def close(self) -> None:
        self.end("closed here")

    # -- from the network

    def start_connecting(self, addresses: list[SocketAddress]) -> None:
        """Try the addresses one after the other until one answers."""
        if self._closed:
            return
        faults = self._network.faults
        if faults is not None and faults.delays(self, addresses):
            return
        patience_ms = self._network.connect_timeout_ms
        self._dialling = Dialling(self._network.loop, addresses, patience_ms, self._connected, self.end)
        self._dialling.next()

    def open_with(self, sock: socket.socket) -> None:
        """The socket is connected: frames may flow."""
        self._sock = sock
        self._fd = sock.fileno()
        self._bind(sock)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open = True
        self._watch()
        if self._network.faults is not None:
            self._network.faults.opened(self)

    def _bind(self, sock: socket.socket) -> None:
        self._recv_into, self._sock_send = sock.recv_into, sock.send

    def end(self, reason: str) -> None:
        """Close, and tell the handler in a later turn."""
        if self._closed:
            return
        self._closed = True
        self._open = False
        self._drop_socket()
        if self._dialling is not None:
            self._dialling.cancel()
            self._dialling = None
        self._queue.clear()
        self._received.release()
        self._network.forget(self)
        handler, self.handler = self.handler, None
        if handler is not None:
            self._network.loop.post(lambda: handler.on_close(reason))

    # -- for faults of links (`faults/links.py`)

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def peer_port(self) -> int:
        return int(self.peer.rpartition(":")[2])

    @property
    def local_port(self) -> int:
        """0 of one that is not open."""
        return 0 if self._sock is None else int(self._sock.getsockname()[1])

    def swap_socket(self, sock: socket.socket) -> socket.socket:
        """Go on with another socket, where the last byte of the present one has been read or sent; gives that one."""
        before = self._sock
        if before is None or not self._open:
            raise ValueError("only an open connection has a socket to give")
        aio = self._loop.aio
        if self._reading:
            aio.remove_reader(self._fd)
            aio.add_reader(sock.fileno(), self._on_readable)
        if self._blocked:
            aio.remove_writer(self._fd)
            aio.add_writer(sock.fileno(), self._on_writable)
        self._sock = sock
        self._fd = sock.fileno()
        self._bind(sock)
        return before

    def _connected(self, sock: socket.socket) -> None:
        self._dialling = None
        self.open_with(sock)
        self._announce()

    def _announce(self) -> None:
        """The connection that was dialled is open."""
        handler = self.handler
        if handler is not None:
            try:
                handler.on_open(self)
            except Exception as error:
                self._network.loop.failed("on_open", error)
                self.end(f"error in on_open: {error!r}")
                return
        if self._open and self._out:
            self._flush()

    def _drop_socket(self) -> None:
        sock = self._sock
        if sock is not None:
            aio = self._network.loop.aio
            aio.remove_reader(self._fd)
            aio.remove_writer(self._fd)
            self._reading = self._blocked = False
            self._sock = None
            self._fd = -1
            self._recv_into = self._sock_send = not_open
            sock.close()

    # -- receiving

    def _watch(self) -> None:
        if not self._reading:
            self._reading = True
            self._network.loop.aio.add_reader(self._fd, self._on_readable)

    def _on_readable(self) -> None:
        received = self._received
        view = received.view
        if received.written or self._paused or view is None:
            self._receive_more()
            return
        loop = self._loop
        if self._lent_turn == loop.turn:
            loop.finish_turn()  # what the frames of this turn point to is about to be written over
            if self._closed or self._paused:
                return
        try:
            count = self._recv_into(view)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.end(error.strerror or str(error))
            return
        if count > received.peak:
            received.peak = count
        length: int = _LENGTH.unpack_from(view)[0]
        if length == count - 4 and 0 <= length <= self._small_frame_bytes and count < len(view):
            # One frame and nothing else: nearly always. A full buffer may have more behind it, and should grow.
            self._lent_turn = loop.turn
            handler = self.handler
            if handler is not None:
                try:
                    handler.on_frame(view[4:count])
                except Exception as error:
                    self._handler_failed(error)
        elif count:
            received.written = count
            self._deliver()
        else:
            self.end("closed by the other side")

    def _receive_more(self) -> None:
        """The same for a connection that is paused, has no buffer, or holds part of a frame."""
        if self._sock is None or self._holds_frame:
            return
        if self._paused:
            self._reading = False
            self._loop.aio.remove_reader(self._fd)
            return
        view = self._space()
        if view is None:
            return
        received = self._received
        written = received.written
        # A big frame is received to its exact end, so that nothing behind it has to be moved.
        end = received.read + received.wanted if received.wanted > RECEIVE_BYTES_KEPT else len(view)
        try:
            count = self._recv_into(view[written:end])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.end(error.strerror or str(error))
            return
        if count == 0:
            self.end("closed by the other side")
            return
        received.written = written = written + count
        if written > received.peak:
            received.peak = written
        if written >= received.read + received.wanted:
            self._deliver()

    def _space(self) -> memoryview | None:
        """The receive buffer with space behind `written`; None if the connection was closed or paused meanwhile.

        Where memory that was lent is to be written over, the turn is finished first.
        """
        received = self._received
        view = received.view
        if view is not None and received.has_space():
            return view
        size = received.needed_size()
        if view is None or size:
            return self._replace_buffer(size)
        if self._lent_turn == self._loop.turn:
            self._loop.finish_turn()
            if self._closed or self._paused:
                return None
        received.rewind(view)
        return view

    def _replace_buffer(self, size: int) -> memoryview:
        view = self._received.replace(size)
        if size > RECEIVE_BYTES_MIN:
            self._network.watch_buffer(self)
        return view

    def set_max_frame_bytes(self, size: int) -> None:
        self._max_frame_bytes = size
        self._small_frame_bytes = min(size, BULK_BYTES)

    def shrink(self) -> bool:
        """Give up buffer space that was not used since the last call; True while there is more to give up later."""
        received = self._received
        size = received.idle_size()
        if size == 0:
            received.release()
        elif size is not None:
            self._replace_buffer(size)
        return received.view is not None

    def _deliver(self, *, large: bool = False) -> None:
        """Hand every whole frame to the handler, unless it pauses or closes the connection.

        A large one waits for its share of the pass; `large`: it has it.
        """
        handler, received = self.handler, self._received
        view = received.view
        if handler is None or view is None or self._holds_frame:
            return
        self._lent_turn = self._loop.turn
        read, written = received.read, received.written
        received.wanted = 0
        try:
            while written - read >= 4:
                length: int = _LENGTH.unpack_from(view, read)[0]
                if not 0 <= length <= self._max_frame_bytes:
                    unread = f"a frame of {length} bytes where at most {self._max_frame_bytes} are allowed"
                    self.end(TLS_CLIENT if length >> 16 == _TLS_HELLO else unread)
                    return
                end = read + 4 + length
                if end > written:
                    received.wanted = end - read
                    return
                if length > BULK_BYTES:
                    if not large:
                        self._holds_frame = True
                        self._bulk.deliver_later(self._deliver_large)
                        return
                    large = False
                received.read = end
                handler.on_frame(view[read + 4 : end])
                read = end
                if self._paused or self._closed:
                    return
        except Exception as error:
            self._handler_failed(error)
            return
        if read == written:
            received.read = received.written = 0
            if written == len(view) < RECEIVE_BYTES_KEPT:
                self._replace_buffer(written * 4)  # the last recv filled it: there is more where that came from

    def _deliver_large(self) -> None:
        self._holds_frame = False
        if not self._paused:
            self._deliver(large=True)

    def _handler_failed(self, error: Exception) -> None:
        self._loop.failed("on_frame", error)
        self.end(f"error in on_frame: {error!r}")

    def _deliver_again(self) -> None:
        if not self._paused:
            self._deliver()

    # -- sending

    def _flush(self) -> None:
        """Hand what waits to the network, and let the rest wait until the socket is writable."""
        if not self._write() and self._open:
            self._block()

    def _read_first(self, file: DiskFile, offset: int, length: int) -> None:
        """Have a thread read what is to be sent next, and go on when it is in memory."""
        self._waits_for_disk = True
        if self._blocked:
            self._blocked = False
            self._loop.aio.remove_writer(self._fd)
        try:
            self._network.cold_reads.read(file, offset, length, self._was_read)
        except OSError as error:
            self.end(f"{file.path} cannot be sent: {error.strerror}")

    def _was_read(self) -> None:
        self._waits_for_disk = False
        self._queue.was_read()
        if self._open:
            self._flush()

    def _block(self) -> None:
        if self._open and not self._waits_for_disk:
            self._blocked = True
            self._loop.aio.add_writer(self._fd, self._on_writable)

    def _on_writable(self) -> None:
        if self._open and self._write() and self._blocked:
            self._blocked = False
            self._loop.aio.remove_writer(self._fd)

    def _write(self) -> bool:
        """Send from the head of the queue; True when it is empty."""
        sock = self._sock
        if sock is None:
            return False
        queue = self._queue
        try:
            done = queue.write(sock, self._bulk)
            if queue.cold is not None:
                self._read_first(*queue.cold)
            return done
        except CannotSend as error:
            self.end(str(error))
        except OSError as error:
            self.end(error.strerror or str(error))
        return False


def not_open(*_: object) -> int:
    """In place of the methods of a socket that is not there."""
    raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
