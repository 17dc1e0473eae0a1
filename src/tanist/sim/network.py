"""The `Network` port in virtual time: streams with latency, partitions in either direction, resets, refusals.

A connection is two pipes. Bytes of a pipe arrive in order or not at all; a blocked link holds them back (TCP would
send them again) until it heals, or until the connection is given up after `give_up_ms`. A process that is killed
leaves its sockets to its operating system, which resets them; a machine that loses power says nothing at all, and its
peers find out by a reset when it is back, or by their own patience.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tanist.ports import Chunk, Connection, ConnectionHandler, FileRange
from tanist.sim.scheduler import MICROSECONDS, Event, Process, Scheduler

_EPHEMERAL = 40_000


@dataclass
class NetworkConditions:
    """What the links are like. Times in microseconds; the latency is drawn per delivery from the range."""

    latency_us: tuple[int, int] = (50, 300)
    slow_links: dict[tuple[str, str], int] = field(default_factory=dict)
    """(from host, to host) -> extra latency in microseconds."""
    bytes_per_us: int = 1000
    give_up_ms: int = 20_000
    connect_patience_ms: int = 10_000


class SimNetwork:
    """All links and listeners of the world."""

    def __init__(self, scheduler: Scheduler, conditions: NetworkConditions | None = None) -> None:
        self.scheduler = scheduler
        self.conditions = conditions or NetworkConditions()
        self._listeners: dict[tuple[str, int], SimListener] = {}
        self._blocked: set[tuple[str, str]] = set()
        self._dark: set[str] = set()
        self._ends: dict[int, _End] = {}
        self._next_id = 0
        self._next_port = _EPHEMERAL

    # -- faults

    def block(self, source: str, target: str) -> None:
        """Nothing gets from `source` to `target` any more. One direction only."""
        self._blocked.add((source, target))

    def heal(self, source: str | None = None, target: str | None = None) -> None:
        """Open one direction, or all; what was held back arrives."""
        if source is None or target is None:
            self._blocked.clear()
        else:
            self._blocked.discard((source, target))
        for end in list(self._ends.values()):
            end.pump()

    def blocked(self, source: str, target: str) -> bool:
        return (source, target) in self._blocked or source in self._dark or target in self._dark

    def killed(self, process: Process) -> None:
        """A process has died; the operating system resets its connections and closes its listeners."""
        for key, listener in list(self._listeners.items()):
            if listener.process is process:
                del self._listeners[key]
        for end in list(self._ends.values()):
            if end.process is process:
                end.reset("connection reset by peer")

    def lost_power(self, host: str, process: Process) -> None:
        """A machine has gone dark: nobody is told anything."""
        self._dark.add(host)
        for key, listener in list(self._listeners.items()):
            if listener.process is process:
                del self._listeners[key]

    def got_power(self, host: str) -> None:
        """The machine is back and knows nothing of its old connections: it resets them when it hears of them."""
        self._dark.discard(host)
        for end in list(self._ends.values()):
            if end.host == host and not end.process.alive:
                end.reset("connection reset by peer")

    def reset_some(self, host: str, other: str) -> None:
        """Break the connections between two hosts, as a middlebox might."""
        for end in list(self._ends.values()):
            if end.host == host and end.peer_host == other:
                end.reset("connection reset by peer")
                if end.other is not None:
                    end.other.reset("connection reset by peer")

    # -- for the ports

    def view(self, host: str, process: Process) -> SimNetworkView:
        """The `Network` port of one process on `host`."""
        return SimNetworkView(self, host, process)

    def latency_us(self, source: str, target: str, size_bytes: int) -> int:
        low, high = self.conditions.latency_us
        base = self.scheduler.chance.randint(low, high)
        extra = self.conditions.slow_links.get((source, target), 0)
        return base + extra + size_bytes // self.conditions.bytes_per_us

    def new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port


class SimListener:
    """A listening socket."""

    def __init__(
        self,
        network: SimNetwork,
        process: Process,
        host: str,
        port: int,
        accept: Callable[[Connection], ConnectionHandler],
        max_frame_bytes: int,
    ) -> None:
        self._network = network
        self.process = process
        self.host = host
        self.port = port
        self.accept = accept
        self.max_frame_bytes = max_frame_bytes

    def close(self) -> None:
        key = (self.host, self.port)
        if self._network._listeners.get(key) is self:
            del self._network._listeners[key]


class SimNetworkView:
    """`ports.Network` of one process."""

    def __init__(self, network: SimNetwork, host: str, process: Process) -> None:
        self._network = network
        self._host = host
        self._process = process

    def listen(
        self, host: str, port: int, accept: Callable[[Connection], ConnectionHandler], *, max_frame_bytes: int
    ) -> SimListener:
        address = host or self._host
        if port == 0:
            port = self._network.free_port()
        if (address, port) in self._network._listeners:
            raise OSError(98, f"address {address}:{port} is in use")
        listener = SimListener(self._network, self._process, address, port, accept, max_frame_bytes)
        self._network._listeners[(address, port)] = listener
        return listener

    def connect(self, host: str, port: int, handler: ConnectionHandler, *, max_frame_bytes: int) -> Connection:
        network = self._network
        end = _End(network, self._host, host, self._process, f"{host}:{port}", max_frame_bytes)
        end.handler = handler
        end.dial(port)
        return end


class _End:
    """One end of a connection; the `Connection` port of its process."""

    def __init__(
        self, network: SimNetwork, host: str, peer_host: str, process: Process, peer: str, max_frame_bytes: int
    ) -> None:
        self._network = network
        self._scheduler = network.scheduler
        self.host = host
        self.peer_host = peer_host
        self.process = process
        self.peer = peer
        self._max_frame_bytes = max_frame_bytes
        self.handler: ConnectionHandler | None = None
        self.other: _End | None = None
        self.established = False
        self.closed = False
        self._told_closed = False
        self._outgoing: list[bytes] = []
        """Sent, and not on its way yet: not established, or held back by a blocked link."""
        self._finish_after_outgoing: str | None = None
        self._last_arrival_us = 0
        self._received = bytearray()
        self._reading = True
        self._patience: Event | None = None
        self._id = network.new_id()
        network._ends[self._id] = self

    # -- establishing

    def dial(self, port: int) -> None:
        patience_us = self._network.conditions.connect_patience_ms * MICROSECONDS
        self._patience = self._scheduler.after(patience_us, lambda: self._lost("connection timed out"))
        self._try_dial(port)

    def _try_dial(self, port: int) -> None:
        if self.closed or not self.process.alive:
            return
        network = self._network
        if network.blocked(self.host, self.peer_host) or network.blocked(self.peer_host, self.host):
            # The first packet is lost; the operating system tries again until the patience is over.
            self._scheduler.after(200 * MICROSECONDS, lambda: self._try_dial(port))
            return
        there = network.latency_us(self.host, self.peer_host, 0)
        self._scheduler.after(there, lambda: self._arrive(port))

    def _arrive(self, port: int) -> None:
        if self.closed:
            return
        network = self._network
        listener = network._listeners.get((self.peer_host, port))
        back = network.latency_us(self.peer_host, self.host, 0)
        if listener is None or not listener.process.alive:
            self._scheduler.after(back, lambda: self._lost("connection refused"))
            return
        other = _End(
            network,
            self.peer_host,
            self.host,
            listener.process,
            f"{self.host}:{_EPHEMERAL + self._id}",
            listener.max_frame_bytes,
        )
        self.other, other.other = other, self
        other.established = True

        def accept() -> None:
            other.handler = listener.accept(other)

        self._scheduler.after(0, accept, listener.process)
        self._scheduler.after(back, self._established)

    def _established(self) -> None:
        if self.closed:
            return
        self.established = True
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        handler = self.handler
        if handler is not None:
            self._scheduler.dispatch(self.process, lambda: handler.on_open(self))
        self.pump()

    # -- ports.Connection

    @property
    def pending_bytes(self) -> int:
        return sum(len(piece) for piece in self._outgoing)

    def send(self, chunks: Sequence[Chunk]) -> None:
        if self.closed:
            return
        pieces: list[bytes] = []
        for chunk in chunks:
            if isinstance(chunk, FileRange):
                pieces.append(chunk.file.read(chunk.offset, chunk.length))
            else:
                pieces.append(bytes(chunk))
        self._outgoing.append(b"".join(pieces))
        self.pump()

    def pause(self) -> None:
        self._reading = False

    def resume(self) -> None:
        if not self._reading:
            self._reading = True
            self._scheduler.after(0, self._deliver_frames, self.process)

    def close(self) -> None:
        if self.closed:
            return
        self._end_locally("closed")
        self._finish("closed by peer")

    # -- the wire

    def pump(self) -> None:
        """Put on its way what can be."""
        other = self.other
        if not self.established or other is None or self._network.blocked(self.host, self.peer_host):
            if self._outgoing or self._finish_after_outgoing is not None:
                self._arm_patience()
            return
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        outgoing, self._outgoing = self._outgoing, []
        for data in outgoing:
            arrival = self._arrival_us(len(data))
            self._scheduler.at(arrival, lambda data=data: other._arrived(data), other.process)  # type: ignore[misc]
        if self._finish_after_outgoing is not None:
            reason, self._finish_after_outgoing = self._finish_after_outgoing, None
            self._network._ends.pop(self._id, None)
            self._scheduler.at(self._arrival_us(0), lambda: other._lost(reason))

    def _arrival_us(self, size_bytes: int) -> int:
        latency = self._network.latency_us(self.host, self.peer_host, size_bytes)
        # A stream keeps its order: nothing overtakes what was sent before.
        self._last_arrival_us = max(self._last_arrival_us, self._scheduler.now_us + latency)
        return self._last_arrival_us

    def _arm_patience(self) -> None:
        if self._patience is None and self.established:
            give_up_us = self._network.conditions.give_up_ms * MICROSECONDS
            self._patience = self._scheduler.after(give_up_us, self._gave_up)

    def _gave_up(self) -> None:
        self._patience = None
        if self._outgoing or self._finish_after_outgoing is not None:
            self._lost("connection timed out")

    def _arrived(self, data: bytes) -> None:
        if self.closed:
            return
        self._received += data
        self._deliver_frames()

    def _deliver_frames(self) -> None:
        handler = self.handler
        received = self._received
        position = 0
        frames: list[memoryview] = []
        while self._reading and not self.closed and handler is not None and len(received) - position >= 4:
            length = int.from_bytes(received[position : position + 4], "big", signed=True)
            if not 0 <= length <= self._max_frame_bytes:
                self._received = bytearray()
                self._lost(f"frame of {length} bytes")
                self._finish("connection reset by peer")
                break
            if len(received) - position - 4 < length:
                break
            frame = memoryview(received[position + 4 : position + 4 + length])
            position += 4 + length
            frames.append(frame)
            handler.on_frame(frame)
        if position and self._received is received:
            self._received = received[position:]
        if frames:
            # A frame is valid until the end of the turn (ports.py). Whoever kept it will notice.
            self.process.soon.append(lambda: _poison(frames))

    def reset(self, reason: str) -> None:
        """This end is gone at once, and the other will hear of it."""
        if not self.closed:
            self._end_locally(reason)
        self._finish(reason)

    def _finish(self, reason: str) -> None:
        if self.other is not None and not self.other.closed:
            self._finish_after_outgoing = reason
            self.pump()

    def _lost(self, reason: str) -> None:
        if not self.closed:
            self._end_locally(reason)

    def _end_locally(self, reason: str) -> None:
        self.closed = True
        if self.other is None or self.other.closed:
            # Else the other end is still to be told, perhaps only after a blocked link has healed.
            self._network._ends.pop(self._id, None)
        if self._patience is not None and not self._outgoing:
            self._patience.cancel()
            self._patience = None
        handler = self.handler
        if handler is not None and not self._told_closed:
            self._told_closed = True
            self._scheduler.after(0, lambda: handler.on_close(reason), self.process)


def _poison(frames: list[memoryview]) -> None:
    for frame in frames:
        frame[:] = b"\xdb" * len(frame)
