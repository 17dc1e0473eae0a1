"""The raw load generator: one process, plain sockets, frames that were encoded before.

    python -m bench.load SPEC        (SPEC: JSON of `LoadSpec`)

Closed loop: every connection has `depth` requests in flight, and sends one for every answer. Open loop: requests start
at their due times whatever the answers do, and a latency counts from the due time (no coordinated omission).

It prints `ready` when the connections have been warmed, waits for a line, and then measures; so the parent can read the
servers' CPU clocks at the same moments. What it measures it prints as one line of JSON.
"""

from __future__ import annotations

import json
import resource
import select
import socket
import struct
import sys
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from bench import frames
from bench.frames import Frames

RECEIVE_BYTES = 1 << 20
_LENGTH = struct.Struct(">i")
_ERROR = struct.Struct(">h")


class LoadFailed(RuntimeError):
    """A broker answered with an error, or hung up."""


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """What to send, where, and for how long."""

    host: str
    port: int
    topic: str
    kind: str
    """"produce" or "fetch"."""

    connections: int
    depth: int = 1
    seconds: float = 2.0
    warm_seconds: float = 0.3
    rate: float = 0.0
    """Requests a second in the open loop; 0 is the closed loop."""

    batch_bytes: int = 0
    value_bytes: int = 100
    acks: int = 1
    partition: int = 0
    offsets: tuple[int, ...] = ()
    offset_range: tuple[int, int, int] = (0, 0, 1)
    """(first, end, step) of fetch offsets, where `offsets` names none."""
    max_bytes: int = 0

    def frames(self) -> Frames:
        if self.kind == "fetch":
            offsets = self.offsets or range(*self.offset_range)
            return frames.fetch(self.topic, self.partition, list(offsets), self.max_bytes)
        batch = frames.batch_of_size(self.batch_bytes, self.value_bytes, int(time.time() * 1000))
        return frames.produce(self.topic, self.partition, batch, self.acks)


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What came of it."""

    requests: int
    seconds: float
    bytes: int
    """Of record batches, sent or received."""

    p50_us: float
    p99_us: float
    max_us: float
    client_cpu_seconds: float
    latencies_us: Sequence[float] = ()
    """All of them in ascending order, of an open loop: they are few, and runs can be pooled."""


class _Connection:
    """One connection, its requests in flight, and the answer that is on its way."""

    __slots__ = ("head", "need", "next_frame", "sent_at", "socket")

    def __init__(self, spec: LoadSpec) -> None:
        self.socket = socket.create_connection((spec.host, spec.port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent_at: deque[float] = deque()
        self.need = 0
        """Bytes of the present answer that are still to come."""
        self.head = bytearray()
        """The beginning of an answer that came in crumbs."""
        self.next_frame = 0


class Generator:
    """Sends one workload's frames over some connections, and times the answers."""

    def __init__(self, spec: LoadSpec) -> None:
        self.spec = spec
        self.frames = spec.frames()
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._connections = [_Connection(spec) for _ in range(spec.connections)]
        # Spread the connections over the frames: not all of them read the same offset at once.
        for index, connection in enumerate(self._connections):
            connection.next_frame = index * len(self.frames.requests) // spec.connections
        self.latencies_s = array("d")
        self.answers = 0
        self.received_bytes = 0
        self._whole = -1
        """The length of every answer, where all are alike and one has been seen."""

    def close(self) -> None:
        for connection in self._connections:
            connection.socket.close()

    def run(self, seconds: float) -> float:
        """Send for so long, wait for the last answers; gives the seconds from first request to last answer."""
        self.latencies_s = array("d")
        self.answers = self.received_bytes = 0
        return self._open_loop(seconds) if self.spec.rate else self._closed_loop(seconds)

    def _send(self, connection: _Connection, at: float) -> None:
        requests = self.frames.requests
        frame = requests[connection.next_frame]
        connection.next_frame = (connection.next_frame + 1) % len(requests)
        connection.sent_at.append(at)
        sent = connection.socket.send(frame)
        if sent < len(frame):
            connection.socket.sendall(memoryview(frame)[sent:])

    def _receive(self, connection: _Connection, clock: Callable[[], float]) -> int:
        """Take in what is there; gives how many answers it completed."""
        size = connection.socket.recv_into(self._buffer)
        if size == 0:
            raise LoadFailed("the broker hung up")
        now = clock()
        if size == self._whole and not connection.need and not connection.head and not self._error():
            # Nearly always, where answers are small and one is in flight: exactly one, whole.
            self.latencies_s.append(now - connection.sent_at.popleft())
            self.answers += 1
            self.received_bytes += size
            return 1
        position = completed = 0
        while position < size:
            if not connection.need:
                position = self._begin(connection, position, size)
                if connection.head:
                    break
            taken = min(connection.need, size - position)
            connection.need -= taken
            position += taken
            if not connection.need:
                self.latencies_s.append(now - connection.sent_at.popleft())
                completed += 1
        self.answers += completed
        return completed

    def _error(self) -> int:
        at = self.frames.error_at
        return self._buffer[at] | self._buffer[at + 1]

    def _begin(self, connection: _Connection, position: int, size: int) -> int:
        """Read length and error of an answer that begins at `position`; gives the position to go on from."""
        least = self.frames.error_at + 2
        crumbs = connection.head
        missing = least - len(crumbs)
        if not crumbs and size - position >= least:
            head: bytes | memoryview = self._view[position : position + least]
            read = 0
        else:
            end = min(size, position + missing)
            crumbs += self._view[position:end]
            position = end
            if len(crumbs) < least:
                return position
            head, read = bytes(crumbs), least
            crumbs.clear()
        (length,) = _LENGTH.unpack_from(head)
        (error,) = _ERROR.unpack_from(head, self.frames.error_at)
        if error or 4 + length < least:
            raise LoadFailed(f"error {error} in the answer to a {self.spec.kind} request ({length} bytes)")
        if self.frames.same_length:
            self._whole = 4 + length
        connection.need = 4 + length - read
        self.received_bytes += 4 + length
        return position

    def _closed_loop(self, seconds: float) -> float:
        clock = time.perf_counter
        by_descriptor = {connection.socket.fileno(): connection for connection in self._connections}
        poller = select.epoll()
        for descriptor in by_descriptor:
            poller.register(descriptor, select.EPOLLIN)
        try:
            started = clock()
            end = started + seconds
            for connection in self._connections:
                for _ in range(self.spec.depth):
                    self._send(connection, clock())
            in_flight = self.spec.depth * len(self._connections)
            while in_flight:
                events = poller.poll(10.0)
                if not events:
                    raise LoadFailed("no answer for 10 s")
                for descriptor, _ in events:
                    connection = by_descriptor[descriptor]
                    completed = self._receive(connection, clock)
                    now = clock()
                    if now < end:
                        for _ in range(completed):
                            self._send(connection, now)
                    else:
                        in_flight -= completed
            return clock() - started
        finally:
            poller.close()

    def _open_loop(self, seconds: float) -> float:
        clock = time.perf_counter
        idle = deque(self._connections)
        busy: dict[int, _Connection] = {}
        waiting: deque[float] = deque()
        started = clock()
        total = int(seconds * self.spec.rate)
        due_number = 0
        while due_number < total or busy or waiting:
            now = clock()
            while due_number < total and (due := started + due_number / self.spec.rate) <= now:
                waiting.append(due)
                due_number += 1
            while waiting and idle:
                connection = idle.popleft()
                self._send(connection, waiting.popleft())
                busy[connection.socket.fileno()] = connection
            patience = 10.0
            if due_number < total:
                patience = max(0.0, started + due_number / self.spec.rate - clock())
            # select, for its timeout is in microseconds, where epoll's is in milliseconds.
            readable, _, _ = select.select(list(busy), [], [], patience)
            if not readable and due_number >= total:
                raise LoadFailed("no answer for 10 s")
            for descriptor in readable:
                if self._receive(busy[descriptor], clock):
                    idle.append(busy.pop(descriptor))
        return clock() - started


def percentile(ordered: list[float], fraction: float) -> float:
    """The value below which that fraction of an ordered list lies."""
    if not ordered:
        raise ValueError("no values")
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


def measure(generator: Generator, seconds: float) -> LoadResult:
    """One measured run."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    elapsed = generator.run(seconds)
    after = resource.getrusage(resource.RUSAGE_SELF)
    ordered = sorted(generator.latencies_s)
    payload = generator.frames.payload_bytes * generator.answers or generator.received_bytes
    return LoadResult(
        requests=generator.answers,
        seconds=elapsed,
        bytes=payload,
        p50_us=percentile(ordered, 0.50) * 1e6,
        p99_us=percentile(ordered, 0.99) * 1e6,
        max_us=ordered[-1] * 1e6,
        client_cpu_seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        latencies_us=[each * 1e6 for each in ordered] if generator.spec.rate else (),
    )


def main() -> int:
    described = json.loads(sys.argv[1])
    for name in ("offsets", "offset_range"):
        if name in described:
            described[name] = tuple(described[name])
    spec = LoadSpec(**described)
    generator = Generator(spec)
    try:
        generator.run(spec.warm_seconds)
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps(asdict(measure(generator, spec.seconds))), flush=True)
    except LoadFailed as error:
        print(f"{spec.kind} to {spec.host}:{spec.port}: {error}", file=sys.stderr)
        return 1
    finally:
        generator.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
