"""One TCP connection: bytes in, frames out; chunks in, bytes out.

In: one receive buffer per connection that starts small, grows while the traffic needs it and shrinks when it does
not. Frames are views into it, several per `recv`. Before memory that a frame pointed to is used again, the turn is
finished, so that the callbacks that frames have scheduled have run (the promise of `ConnectionHandler.on_frame`).

Out: what `send` is given goes to the network at once, for a node sends what a turn has produced in one go. Small
answers are joined to one piece; larger ranges of files go by `sendfile`, what stands around them in the same packets
(MSG_MORE, TCP_CORK). What the network does not take waits for the socket to be writable.

The usual cases are short: one `recv` brings exactly one frame (`_on_readable`), and an answer is taken whole (`send`).
They keep no books of buffer and queue, as all other cases do.

It must never size a buffer by what a peer merely declares: a buffer is at most `_TRUST` times what has arrived.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tanist.ports import Chunk, ConnectionHandler, FileRange
from tanist.runtime.ports.dialling import Dialling
from tanist.runtime.ports.files import DiskFile

if TYPE_CHECKING:
    from tanist.runtime.ports.loop import Loop
    from tanist.runtime.ports.socket_address import SocketAddress

_LENGTH = struct.Struct(">i")
_MSG_MORE: int = getattr(socket, "MSG_MORE", 0)
_TCP: int = socket.IPPROTO_TCP
_CORK: int = getattr(socket, "TCP_CORK", 0)

RECEIVE_BYTES_MIN = 4096
RECEIVE_BYTES_KEPT = 65_536
"""As far as a buffer grows because there is much to read; beyond it only for a frame that is bigger."""

_TRUST = 8
_VECTOR_MAX = 512
_BYTES_AT_ONCE = 4 << 20
"""What one connection may hand to the network in one go before others get their turn."""

_JOINED_BYTES = 16_384
"""Up to so many, a copy costs less than the system calls it saves, and the other side wakes up once."""

_CORKED_BYTES = 131_072
"""Up to so many, a packet less is worth holding the others back."""


class ConnectionFaults(Protocol):
    """Faults of links: asked about a connection when it is dialled and when it is open, never later."""

    def delays(self, connection: SocketConnection, addresses: list[SocketAddress]) -> bool:
        """Whether it may not be dialled yet."""

    def opened(self, connection: SocketConnection) -> None: ...


class ConnectionOwner(Protocol):
    """The network that a connection belongs to, as the connection sees it."""

    loop: Loop
    connect_timeout_ms: int
    faults: ConnectionFaults | None

    def forget(self, connection: SocketConnection) -> None:
        """It has closed."""

    def watch_buffer(self, connection: SocketConnection) -> None:
        """Its receive buffer has grown."""


class SocketConnection:
    """The `Connection` port on a raw socket."""

    __slots__ = (
        "_blocked", "_buffer", "_closed", "_dialling", "_fd", "_head_sent", "_lent_turn", "_loop",
        "_max_frame_bytes", "_network", "_open", "_option", "_out", "_paused", "_peak", "_peer", "_pending_bytes",
        "_read", "_reading", "_recv_into", "_sock", "_sock_send", "_view", "_wanted", "_written", "accepted", "handler",
    )  # fmt: skip

    def __init__(self, network: ConnectionOwner, peer: Any, max_frame_bytes: int) -> None:
        self.handler: ConnectionHandler | None = None
        self.accepted = False
        self._network = network
        self._loop = network.loop
        self._peer = peer
        self._max_frame_bytes = max_frame_bytes
        self._sock: socket.socket | None = None
        self._fd = -1
        # Methods of the socket: bound once, they cost half.
        self._recv_into: Callable[[memoryview], int] = _not_open
        self._sock_send: Callable[..., int] = _not_open
        self._option: Callable[[int, int, int], object] = _not_open
        self._open = False
        self._closed = False
        self._reading = False
        self._paused = False
        self._dialling: Dialling | None = None
        # The receive buffer: [_read, _written) has arrived and was not delivered; both are 0 when all was. None while
        # there is nothing to hold.
        self._buffer: bytearray | None = None
        self._view: memoryview | None = None
        self._read = 0
        self._written = 0
        self._wanted = 0
        """Bytes of the frame at `_read`, its length included, once they are known; else 0."""
        self._peak = 0
        """The most that `_written` was since the last `shrink`."""
        self._lent_turn = -1
        # What the network has not taken yet; of the first chunk `_head_sent` bytes are gone.
        self._out: deque[Chunk] = deque()
        self._head_sent = 0
        self._pending_bytes = 0
        self._blocked = False
        """Waiting for the socket to be writable."""

    # -- Connection

    @property
    def peer(self) -> str:
        peer = self._peer
        if not isinstance(peer, str):
            host, port = peer[0], peer[1]
            peer = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            self._peer = peer
        return peer

    @property
    def pending_bytes(self) -> int:
        return self._pending_bytes

    def send(self, chunks: Sequence[Chunk]) -> None:
        if self._out or not self._open:
            if not self._closed:
                self._enqueue(chunks)
            return
        index = sent = 0
        try:
            if len(chunks) > 1:
                body = chunks[1]
                if type(body) is not FileRange or body.length <= _JOINED_BYTES:
                    chunks = _joined(chunks)
                elif len(chunks) == 3 and _CORK and body.length <= _CORKED_BYTES and type(chunks[2]) is not FileRange:
                    self._send_around(chunks, body)
                    return
            last = len(chunks) - 1
            for index, chunk in enumerate(chunks):
                sent = 0
                if type(chunk) is FileRange:
                    size = chunk.length
                    if size:
                        sent = os.sendfile(self._fd, _disk_file(chunk).fd, chunk.offset, min(size, _BYTES_AT_ONCE))
                else:
                    size = len(chunk)  # type: ignore[arg-type]
                    if index < last:
                        sent = self._sock_send(chunk, _MSG_MORE)
                    elif size:
                        sent = self._sock_send(chunk)
                if sent < size:
                    break
            else:
                return
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self.end(error.strerror or str(error))
            return
        self._keep(chunks[index:], sent)

    def _send_around(self, chunks: Sequence[Chunk], body: FileRange) -> None:
        """The same for the usual answer to a fetch: what stands around a range of a file goes in its packets.

        A file is pushed out at its end, and the few bytes behind it would go, and wake the other side, alone.
        """
        head, _, tail = chunks
        option, send = self._option, self._sock_send
        index = sent = 0
        try:
            option(_TCP, _CORK, 1)
            sent = send(head)
            if sent == len(head):  # type: ignore[arg-type]
                index = 1
                sent = 0
                sent = os.sendfile(self._fd, body.file.fd, body.offset, body.length)  # type: ignore[attr-defined]
                if sent == body.length:
                    index = 2
                    sent = 0
                    sent = send(tail)
            option(_TCP, _CORK, 0)
        except (BlockingIOError, InterruptedError):
            option(_TCP, _CORK, 0)
        except OSError as error:
            self.end(error.strerror or str(error))
            return
        if index < 2 or sent < len(tail):  # type: ignore[arg-type]
            self._keep(chunks[index:], sent)

    def _keep(self, chunks: Sequence[Chunk], sent: int) -> None:
        """Queue what the network has not taken; of the first of these it has `sent` bytes."""
        self._enqueue(chunks)
        self._head_sent = sent
        self._pending_bytes -= sent
        self._block()

    def _enqueue(self, chunks: Sequence[Chunk]) -> None:
        """Keep what has to wait, out of memory that is only lent, and its files open."""
        for chunk in chunks:
            if type(chunk) is FileRange:
                length = chunk.length
                if length == 0:
                    continue
                try:
                    _disk_file(chunk).pin()
                except OSError as error:
                    self.end(f"{chunk.file.path} cannot be sent: {error.strerror}")
                    return
            else:
                length = len(chunk)  # type: ignore[arg-type]
                if length == 0:
                    continue
                chunk = _kept(chunk)
            self._pending_bytes += length
            self._out.append(chunk)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if not self._paused or self._closed:
            self._paused = False
            return
        self._paused = False
        if self._open:
            self._watch()
            if self._written - self._read >= 4:
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
        self._recv_into, self._sock_send, self._option = sock.recv_into, sock.send, sock.setsockopt

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
        for chunk in self._out:
            if type(chunk) is FileRange:
                _disk_file(chunk).unpin()
        self._out.clear()
        self._pending_bytes = 0
        self._buffer = self._view = None
        self._read = self._written = 0
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
            self._recv_into = self._sock_send = self._option = _not_open
            sock.close()

    # -- receiving

    def _watch(self) -> None:
        if not self._reading:
            self._reading = True
            self._network.loop.aio.add_reader(self._fd, self._on_readable)

    def _on_readable(self) -> None:
        view = self._view
        if self._written or self._paused or view is None:
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
        if count > self._peak:
            self._peak = count
        length: int = _LENGTH.unpack_from(view)[0]
        if length == count - 4 and 0 <= length <= self._max_frame_bytes and count < len(view):
            # One frame and nothing else: nearly always. A full buffer may have more behind it, and should grow.
            self._lent_turn = loop.turn
            handler = self.handler
            if handler is not None:
                try:
                    handler.on_frame(view[4:count])
                except Exception as error:
                    self._handler_failed(error)
        elif count:
            self._written = count
            self._deliver()
        else:
            self.end("closed by the other side")

    def _receive_more(self) -> None:
        """The same for a connection that is paused, has no buffer, or holds part of a frame."""
        if self._sock is None:
            return
        if self._paused:
            self._reading = False
            self._loop.aio.remove_reader(self._fd)
            return
        view = self._room()
        if view is None:
            return
        written = self._written
        # A big frame is received to its exact end, so that nothing behind it has to be moved.
        end = self._read + self._wanted if self._wanted > RECEIVE_BYTES_KEPT else len(view)
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
        self._written = written = written + count
        if written > self._peak:
            self._peak = written
        if written >= self._read + self._wanted:
            self._deliver()

    def _room(self) -> memoryview | None:
        """The receive buffer with room behind `_written`; None if the connection was closed meanwhile.

        Grows, compacts or rewinds the buffer. A buffer is replaced, never resized, so memory that was lent stays valid;
        where the same memory is to be written over, the turn is finished first.
        """
        view = self._view
        if view is None:
            return self._replace_buffer(RECEIVE_BYTES_MIN)
        capacity = len(view)
        read, written, wanted = self._read, self._written, self._wanted
        if read < written < capacity and read + max(wanted, 4) <= capacity:
            return view  # the rest of the frame fits behind what is there
        left = written - read
        if wanted > capacity:
            return self._replace_buffer(min(wanted, max(RECEIVE_BYTES_KEPT, _TRUST * left)))
        if written == capacity and left < capacity < RECEIVE_BYTES_KEPT:
            return self._replace_buffer(capacity * 4)  # the last recv filled it: there is more where that came from
        if self._lent_turn == self._loop.turn:
            self._loop.finish_turn()
            if self._closed or self._paused:
                return None
        if left:
            view[:left] = view[read:written]
        self._read = 0
        self._written = left
        return view

    def _replace_buffer(self, size: int) -> memoryview:
        read, written = self._read, self._written
        buffer = bytearray(size)
        if written > read and self._view is not None:
            buffer[: written - read] = self._view[read:written]
        self._buffer = buffer
        self._view = view = memoryview(buffer)
        self._read = 0
        self._written = written - read
        if size > RECEIVE_BYTES_MIN:
            self._network.watch_buffer(self)
        return view

    def shrink(self) -> bool:
        """Give up buffer space that was not used since the last call; True while there is more to give up later."""
        view = self._view
        if view is None:
            return False
        peak, self._peak = self._peak, 0
        if self._read == self._written:
            if peak == 0:
                self._buffer = self._view = None
                self._read = self._written = 0
                return False
            if peak * 4 <= len(view):
                self._replace_buffer(max(RECEIVE_BYTES_MIN, 1 << (peak - 1).bit_length()))
        return True

    def _deliver(self) -> None:
        """Hand every whole frame to the handler, unless it pauses or closes the connection."""
        handler, buffer, view = self.handler, self._buffer, self._view
        if handler is None or buffer is None or view is None:
            return
        self._lent_turn = self._loop.turn
        read, written = self._read, self._written
        self._wanted = 0
        try:
            while written - read >= 4:
                length: int = _LENGTH.unpack_from(buffer, read)[0]
                if not 0 <= length <= self._max_frame_bytes:
                    self.end(f"a frame of {length} bytes where at most {self._max_frame_bytes} are allowed")
                    return
                end = read + 4 + length
                if end > written:
                    self._wanted = end - read
                    return
                self._read = end
                handler.on_frame(view[read + 4 : end])
                read = end
                if self._paused or self._closed:
                    return
        except Exception as error:
            self._handler_failed(error)
            return
        if read == written:
            self._read = self._written = 0
            if written == len(view) < RECEIVE_BYTES_KEPT:
                self._replace_buffer(written * 4)  # the last recv filled it: there is more where that came from

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

    def _block(self) -> None:
        if self._open:
            self._blocked = True
            self._loop.aio.add_writer(self._fd, self._on_writable)

    def _on_writable(self) -> None:
        if self._open and self._write() and self._open:
            self._blocked = False
            self._loop.aio.remove_writer(self._fd)

    def _write(self) -> bool:
        """Send from the head of the queue; True when it is empty."""
        sock, out = self._sock, self._out
        if sock is None:
            return False
        budget = _BYTES_AT_ONCE
        try:
            while out:
                if budget <= 0:
                    return False
                head = out[0]
                if type(head) is FileRange:
                    sent = self._send_file(head, budget)
                    if sent == 0:
                        self.end(f"{head.file.path} is shorter than what was to be sent of it")
                        return False
                else:
                    sent = self._send_bytes(sock, head)
                budget -= sent
                self._pending_bytes -= sent
                if self._head_sent:
                    return False  # taken in part: there is no room for more, and trying would cost as much again
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self.end(error.strerror or str(error))
            return False
        return True

    def _send_file(self, head: FileRange, budget: int) -> int:
        done = self._head_sent
        file = _disk_file(head)
        sent = os.sendfile(self._fd, file.fd, head.offset + done, min(head.length - done, budget))
        if done + sent == head.length:
            self._out.popleft()
            self._head_sent = 0
            file.unpin()
        else:
            self._head_sent = done + sent
        return sent

    def _send_bytes(self, sock: socket.socket, head: Any) -> int:
        out, done = self._out, self._head_sent
        if done:
            head = memoryview(head)[done:]
        if len(out) == 1:
            sent = sock.send(head)
        else:
            vector = [head]
            flags = 0
            for index in range(1, len(out) if len(out) < _VECTOR_MAX else _VECTOR_MAX):
                chunk = out[index]
                if type(chunk) is FileRange:
                    flags = _MSG_MORE
                    break
                vector.append(chunk)
            sent = sock.sendmsg(vector, (), flags)
        passed = done + sent
        while out:
            chunk = out[0]
            if type(chunk) is FileRange or passed < len(chunk):  # type: ignore[arg-type]
                break
            passed -= len(chunk)  # type: ignore[arg-type]
            out.popleft()
        self._head_sent = passed
        return sent


def _not_open(*_: object) -> int:
    """In place of the methods of a socket that is not there."""
    raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))


def _joined(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    """One piece instead of many, if they are small; else the chunks as they are."""
    size = 0
    for chunk in chunks:
        size += chunk.length if type(chunk) is FileRange else len(chunk)  # type: ignore[arg-type]
    if size > _JOINED_BYTES:
        return chunks
    pieces: list[Any] = []
    for chunk in chunks:
        if type(chunk) is FileRange:
            data = os.pread(_disk_file(chunk).fd, chunk.length, chunk.offset)
            if len(data) < chunk.length:
                return chunks  # the file is shorter than it should be, as `sendfile` will find
            pieces.append(data)
        else:
            pieces.append(chunk)
    return [b"".join(pieces)]


def _kept(chunk: Chunk) -> Chunk:
    """The chunk in memory of its own, if it stands in memory that its lender may write over."""
    if type(chunk) is memoryview and not chunk.readonly:
        return bytes(chunk)
    return chunk


def _disk_file(chunk: FileRange) -> DiskFile:
    file = chunk.file
    if type(file) is not DiskFile and not isinstance(file, DiskFile):  # (a disk with faults has others)
        raise TypeError(f"cannot send from a {type(file).__name__}: it is not a file of the real disk")
    return file
