"""One end of a simulated TCP connection: the socket that its host's kernel keeps, and the port that a process holds.

Bytes arrive in order or not at all, at most a window of them ahead of the other process's reads. A frame's memory is
overwritten when its turn has ended, which exposes a node that keeps a view longer than that (`ports.py`).

    state         the process                      the kernel
    dialling      may send, nothing leaves         sends the first packet again and again
    established   sends and reads                  carries
    closed        was notified, or has closed    sends the rest, then the end; answers data with a reset
    gone          -                                does not know it; answers data with a reset
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Protocol
from zlib import crc32

from tanist.ports import TLS_CLIENT, Chunk, ConnectionHandler
from tanist.sim.world.frames import is_part, poison
from tanist.sim.world.link_conditions import NetworkConditions
from tanist.sim.world.listening import Listening
from tanist.sim.world.scheduler import Event, Process, Scheduler
from tanist.sim.world.send_queue import SendQueue
from tanist.sim.world.tls import Certificates

_RESET = "connection reset by peer"
_TIMED_OUT = "connection timed out"


class Links(Protocol):
    """The part of the network that a connection uses (`network.SimNetwork`)."""

    scheduler: Scheduler
    rng: Random
    conditions: NetworkConditions
    fingerprint: int
    readers: list[Callable[[SimConnection, memoryview], None]]
    on_torn: Callable[[str, str], None] | None
    connections: dict[int, SimConnection]
    certificates: Certificates

    def new_id(self) -> int:
        """A number for one end of a connection."""

    def blocked(self, source: str, target: str) -> bool:
        """Whether the link from `source` to `target` is cut."""

    def is_dark(self, host: str) -> bool:
        """Whether the machine has no power."""

    def latency_us(self, source: str, target: str, size_bytes: int) -> int:
        """The time that these bytes take now."""

    def listener(self, host: str, port: int) -> Listening | None:
        """The listener there."""


class SimConnection:
    """`ports.Connection` of one process."""

    def __init__(
        self, network: Links, host: str, peer_host: str, process: Process, peer: str, max_frame_bytes: int
    ) -> None:
        self._network = network
        self._scheduler = network.scheduler
        self._max_frame_bytes = max_frame_bytes
        self.host = host
        self.peer_host = peer_host
        self.process = process
        self.peer = peer
        self.handler: ConnectionHandler | None = None
        self.other: SimConnection | None = None
        self.tls: str | None = None
        """The profile by which it dials."""
        self.peer_identity: str | None = None
        self._awaits_tls = False
        """The other side has no TLS, and its first bytes are no handshake."""
        self.established = False
        self.accepted = False
        """This end listened; the other one dialled."""
        self.closed = False
        self.gone = False
        # Sending: bytes not sent yet, and bytes under way or not read by the other process.
        self.outgoing = SendQueue(self._abort, self._sends_torn)
        self._outgoing = self.outgoing.chunks
        self._unread_bytes = 0
        self._last_arrival_us = 0
        self._resumes_us = 0
        """Before this time nothing is sent again, though the link has healed."""
        self._has_stalled = False
        """What waits has stalled already: it does so once."""
        self._ends = False
        """After `_outgoing` comes the end of the stream."""
        self._patience: Event | None = None
        # Receiving: bytes in the kernel, and the part of an incomplete frame that the process has read.
        self._arrived: list[bytes] = []
        self._partial = bytearray()
        self._owed_bytes = 0
        """Bytes read here, whose acknowledgement a blocked link holds back."""
        self._reading = True
        self._held = False
        self._lent: list[memoryview] = []
        """Frames that the handler may still use, for it has paused the connection."""
        self._read_pending = False
        self._ended: str | None = None
        """The other side's end has arrived; the process is notified when it has read everything before it."""
        self._id = network.new_id()
        network.connections[self._id] = self

    # -- establishing

    def dial(self, port: int) -> None:
        conditions = self._network.conditions
        self._patience = self._scheduler.after(conditions.connect_patience_us, lambda: self._drop(_TIMED_OUT))
        self._send_first(port, conditions.connect_retry_us)

    def _send_first(self, port: int, retry_us: int) -> None:
        if self.closed:
            return
        network = self._network
        if network.blocked(self.host, self.peer_host) or network.blocked(self.peer_host, self.host):
            self._scheduler.after(retry_us, lambda: self._send_first(port, 2 * retry_us))
            return
        self._scheduler.after(
            network.latency_us(self.host, self.peer_host, 0), lambda: self._first_arrived(port, retry_us)
        )

    def _first_arrived(self, port: int, retry_us: int) -> None:
        if self.closed:
            return
        network = self._network
        if network.is_dark(self.peer_host):
            self._send_first(port, retry_us)
            return
        listener = network.listener(self.peer_host, port)
        back_us = network.latency_us(self.peer_host, self.host, 0)
        if listener is None:
            self._scheduler.after(back_us, lambda: self._drop("connection refused"))
            return
        certificates = network.certificates
        if listener.tls is not None and self.tls is not None:
            refusal = certificates.refusal(self.host, self.peer_host, listener.tls)
            if refusal is not None:
                self._scheduler.after(back_us, lambda: self._drop(refusal))
                return
        other = SimConnection(
            network,
            self.peer_host,
            self.host,
            listener.process,
            f"{self.host}:{40_000 + self._id}",
            listener.max_frame_bytes,
        )
        self.other, other.other = other, self
        other.established = other.accepted = True
        other._awaits_tls = listener.tls is not None and self.tls is None
        if listener.tls is not None and self.tls is not None:
            other.peer_identity = certificates.shown(self.host, self.peer_host, listener.tls)
            self.peer_identity = certificates.subject(self.peer_host)

        def accept() -> None:
            if other.closed:
                return
            if listener.closed:
                other._abort("its listener was closed before the process accepted it")
                return
            if other._awaits_tls:
                return
            if listener.paused:
                listener.waiting.append(accept)
                return
            other.handler = listener.accept(other)
            if self.tls is not None and listener.tls is None:
                other._abort(TLS_CLIENT)
            other._wake()

        self._scheduler.after(0, accept, listener.process)
        self._scheduler.after(back_us, self._opened)

    def _opened(self) -> None:
        if self.closed:
            self._reset_other()  # given up meanwhile: the other side has a useless connection
            return
        if self.tls is not None and self.peer_identity is None:
            return  # the other side has no TLS, and closes the connection
        self.established = True
        self._calm()
        handler = self.handler
        if handler is not None:
            self._scheduler.dispatch(self.process, lambda: handler.on_open(self))
        self.pump()

    # -- ports.Connection

    @property
    def pending_bytes(self) -> int:
        return 0 if self.closed else self.outgoing.size_bytes

    @property
    def reads(self) -> bool:
        """Whether its process reads, or has paused it."""
        return self._reading

    def send(self, chunks: Sequence[Chunk]) -> None:
        if self.closed:
            return
        if not self.outgoing.add(chunks):
            return
        self.pump()
        if self._network.on_torn is not None:
            self.outgoing.note_contents(len(chunks))

    def set_max_frame_bytes(self, size: int) -> None:
        self._max_frame_bytes = size

    def pause(self) -> None:
        self._reading = False

    def resume(self) -> None:
        if not self._reading:
            self._reading = True
            lent, self._lent = self._lent, []
            poison(lent)
            self._wake()

    def hold(self) -> None:
        """For scripts: the process does not come to reading, whatever its handler says, until `let_go`."""
        self._held = True

    def let_go(self) -> None:
        self._held = False
        self._wake()

    def close(self) -> None:
        if not self.closed:
            self.orphaned()
            self._tell("closed")

    # -- ends

    def orphaned(self) -> None:
        """No process holds this end any more: the kernel sends its buffer, and the end."""
        if self.closed:
            return
        unread = bool(self._arrived)
        self._shut()
        if not self.established:
            self._vanished()
        elif unread:
            self._reset_other()
        else:
            kept = self.outgoing.take(self._network.conditions.linger_bytes)
            if not self.gone:
                self.outgoing.replace(kept)  # the rest died with the process
            self._ends = True
            self.pump()

    def vanish(self) -> None:
        """The machine lost its power: the connection is gone, without a packet."""
        self._shut()
        self._vanished()

    def was_reset(self, reason: str) -> None:
        """A reset has arrived: the connection is gone here, with all bytes under way."""
        if not self.gone:
            self._drop(reason)

    def _drop(self, reason: str) -> None:
        """Gone on this side; the other side gets no packet."""
        notified = self.closed
        self._shut()
        self._vanished()
        if not notified:
            self._tell(reason)

    def _abort(self, reason: str) -> None:
        """An error while sending or receiving: end the connection, and reset the other side."""
        self._drop(reason)
        self._reset_other()

    def _shut(self) -> None:
        self.closed = True
        self._arrived.clear()
        self._partial = bytearray()
        self._calm()

    def _vanished(self) -> None:
        self.gone = True
        self.outgoing.clear()
        self._network.connections.pop(self._id, None)
        self._calm()

    def _tell(self, reason: str) -> None:
        handler, self.handler = self.handler, None
        if handler is not None:
            self._scheduler.after(0, lambda: handler.on_close(reason), self.process)

    def _reset_other(self) -> None:
        """One packet, which is never repeated."""
        if not self.gone:
            self._vanished()
        other = self.other
        if other is None or other.gone or self._network.blocked(self.host, self.peer_host):
            return
        self._scheduler.at(self._arrival_us(0), lambda: other.was_reset(_RESET))

    # -- sending

    def pump(self) -> None:
        """Send as much as the window allows."""
        other = self.other
        if not self.established or other is None or not (self._outgoing or self._ends):
            return
        network, scheduler = self._network, self._scheduler
        if network.blocked(self.host, self.peer_host):
            self._arm()
            return
        if scheduler.now_us < self._resumes_us:
            return
        conditions = network.conditions
        received_bytes = conditions.receive_bytes.get(self.host)
        if received_bytes is None:
            data = self.outgoing.take(conditions.window(self.host, self.peer_host) - self._unread_bytes)
        else:
            data = self.outgoing.take(received_bytes - self._unread_bytes, 1)
        if not self._outgoing:
            self._has_stalled = False
        if data:
            self._unread_bytes += len(data)
            arrival_us = self._arrival_us(len(data))
            network.fingerprint = crc32(data, network.fingerprint ^ (arrival_us & 0xFFFFFFFF))
            scheduler.at(arrival_us, partial(other._arrive, data))
        if network.blocked(self.peer_host, self.host):
            self._arm()  # it arrives, but no acknowledgement comes
        if self._ends and not self._outgoing and not self.gone:
            self._vanished()
            scheduler.at(self._arrival_us(0), lambda: other._arrive_end("closed by peer"))

    def _sends_torn(self, path: str) -> None:
        on_torn = self._network.on_torn
        if on_torn is not None:
            on_torn(self.host, path)

    def stall(self, duration_us: int) -> None:
        """What is half sent stays so for a while, if it has not stalled before."""
        if self.established and self._outgoing and not self._has_stalled:
            self._has_stalled = True
            self._resumes_us = max(self._resumes_us, self._scheduler.now_us + duration_us)
            self._scheduler.at(self._resumes_us, self.pump)

    def _arrival_us(self, size_bytes: int) -> int:
        latency_us = self._network.latency_us(self.host, self.peer_host, size_bytes)
        # A stream keeps its order: no byte overtakes an earlier one.
        self._last_arrival_us = max(self._last_arrival_us, self._scheduler.now_us + latency_us)
        return self._last_arrival_us

    # -- links

    def link_healed(self, blocked_us: int) -> None:
        """A link of this connection is open again. The sender notices with its next attempt."""
        network, other = self._network, self.other
        if not self.established or other is None or network.blocked(self.host, self.peer_host):
            return
        if self._owed_bytes:
            owed, self._owed_bytes = self._owed_bytes, 0
            other._was_read(owed)
        waits = bool(self._outgoing or self._ends or (other.gone and self._unread_bytes))
        self._resumes_us = self._scheduler.now_us + (int(network.rng.random() * blocked_us / 2) if waits else 0)
        if network.blocked(self.peer_host, self.host):
            self._scheduler.at(self._resumes_us, self.pump)
            return
        self._calm()
        if other.gone and self._unread_bytes and not self._outgoing:
            # Bytes under way when the machine lost power are sent again, to a kernel that does not know them.
            self._scheduler.at(self._resumes_us, lambda: self.was_reset(_RESET))
        else:
            self._scheduler.at(self._resumes_us, self.pump)

    def _arm(self) -> None:
        if self._patience is None:
            self._patience = self._scheduler.after(self._network.conditions.give_up_us, self._gave_up)

    def _calm(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _gave_up(self) -> None:
        self._patience = None
        self._drop(_TIMED_OUT)

    # -- receiving

    def _arrive(self, data: bytes) -> None:
        if self.closed:
            if not self._network.is_dark(self.host):
                self._reset_other()
            elif self.other is not None and not self.other.gone:
                self.other._arm()
            return
        if self._awaits_tls:
            self._abort("not a TLS client")
            return
        self._arrived.append(data)
        if self._reading and not self._read_pending and self.handler is not None:
            small = self._network.conditions.receive_bytes
            if small and self.process.runs and is_part(self._partial, self._arrived):
                self._read()  # the process does nothing with it: no turn for each few bytes
                return
            self._read_pending = True
            self._scheduler.dispatch(self.process, self._read)

    def _arrive_end(self, reason: str) -> None:
        if self._awaits_tls:
            self._drop(reason)
        elif not self.closed:
            self._ended = reason
            self._wake()

    def _wake(self) -> None:
        """Let the process read, in a turn of its own."""
        if not self._read_pending and not self.closed:
            self._read_pending = True
            self._scheduler.after(0, self._read, self.process)

    def _was_read(self, size_bytes: int) -> None:
        self._unread_bytes -= size_bytes
        if self._outgoing or self._ends:
            self.pump()

    def _read(self) -> None:
        """The process's turn: all that has arrived, frame by frame."""
        self._read_pending = False
        handler = self.handler
        if self.closed or not self._reading or self._held or handler is None:
            return
        if self._arrived:
            data = self._arrived[0] if len(self._arrived) == 1 else b"".join(self._arrived)
            self._arrived.clear()
            self._partial += data
            other = self.other
            if other is not None:
                if self._network.blocked(self.host, self.peer_host):
                    self._owed_bytes += len(data)
                else:
                    other._was_read(len(data))
        self._deliver(handler)
        if self._ended is not None and self._reading and not self.closed:
            # The rest is part of a frame that will never be complete.
            self._drop(self._ended)

    def _deliver(self, handler: ConnectionHandler) -> None:
        received = self._partial
        size = len(received)
        position = 0
        frames: list[memoryview] = []
        while size - position >= 4 and self._reading and not self.closed:
            length = int.from_bytes(received[position : position + 4], "big", signed=True)
            if not 0 <= length <= self._max_frame_bytes:
                self._abort(f"frame of {length} bytes")
                break
            end = position + 4 + length
            if size < end:
                break
            frame = memoryview(received[position + 4 : end])
            position = end
            frames.append(frame)
            for read in self._network.readers:
                read(self, frame)
            handler.on_frame(frame)
        if position and not self.closed:
            self._partial = received[position:]
        if frames:
            self.process.soon.append(partial(self._take_back, frames))

    def _take_back(self, frames: list[memoryview]) -> None:
        """The turn is over: the memory of its frames is used again, but while the handler holds the connection."""
        if self._reading:
            poison(frames)
        else:
            self._lent += frames
