"""The end of a turn with real connections and logs, on a clock that stands and a disk that waits for the test."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from tanist.broker.network.client_connection import ClientConnection, ListenerApis
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.turn import Turn
from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.ports import File
from tanist.security.session import Session
from tests.log.log_batches import batch
from tests.log.log_disks import MemoryDisk

LARGE = 1000
FULL = OSError(errno.ENOSPC, "No space left on device")


class Later:
    """A clock that stands, and what is to be done soon."""

    def __init__(self) -> None:
        self._soon: deque[Callable[[], None]] = deque()
        self.turns = 0

    def now_ms(self) -> int:
        return 0

    wall_ms = now_ms

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def run(self) -> None:
        while self._soon:
            self.turns += 1
            self._soon.popleft()()


class BusyDisk(MemoryDisk):
    """Its syncs end when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.large_write_bytes = LARGE
        self.syncs: list[Callable[[], None]] = []

    def sync(self, files: Sequence[File], done: Callable[[OSError | None], None]) -> None:
        def end() -> None:
            for file in files:
                self.sync_now(file)
            done(None)

        self.syncs.append(end)

    def end_one(self, number: int) -> None:
        """End one of the late writes, the others go on."""
        others = [each for index, each in enumerate(self.late_writes) if index != number]
        self.late_writes = [self.late_writes[number]]
        self.end_writes()
        self.late_writes = others


class Wire:
    """The connection under a `ClientConnection`."""

    peer = "client"
    peer_identity = None
    pending_bytes = 0

    def __init__(self, on_send: Callable[[], None]) -> None:
        self.sent: list[bytes] = []
        self.reading = True
        self.closed = False
        self._on_send = on_send

    def send(self, chunks: Sequence[Any]) -> None:
        self.sent += chunks
        self._on_send()

    def set_max_frame_bytes(self, size: int) -> None:
        raise AssertionError("frames are no object")

    def pause(self) -> None:
        self.reading = False

    def resume(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True


class Client(ClientConnection):
    """Its requests are appends, its answers words."""

    __slots__ = ("bench", "wire")

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        owner: Any = bench
        self.wire = Wire(bench.sending)
        super().__init__(
            owner,
            bench.turn.touch,
            self.wire,
            Session("PLAINTEXT", "PLAINTEXT", "client"),
            ListenerApis({}, lambda _: None),
        )

    def append(self, hosted: HostedPartition, answer: bytes = b"", size: int = LARGE) -> memoryview:
        """Take a request to append, as the broker does, and answer it; gives its memory."""
        turn, frame = self.bench.turn, batch([b"v" * size])
        large = len(frame) >= turn.large_bytes
        if large:
            turn.lend(self)
        assert hosted.log.append_as_leader(frame, 0, 0, 1_000).error == 0
        if large:
            turn.mark_lent(hosted, len(frame))
        turn.mark_grown(hosted)
        if answer:
            self.respond([answer])
        return frame

    @property
    def sent(self) -> list[bytes]:
        return self.wire.sent


class Watch:
    """A fetch that waits for data, and a follower's session: counts how often it is asked to complete."""

    done = False

    def __init__(self) -> None:
        self.completions = 0
        self.active = 0

    def try_complete(self, changed: HostedPartition | None = None) -> None:
        self.completions += 1

    partition_changed = try_complete

    def activate(self) -> None:
        self.active += 1

    def expire(self) -> None: ...

    def role_changed(self) -> None: ...


class Bench:
    """A turn with partitions that are led here, and their effects."""

    def __init__(self) -> None:
        self.later = Later()
        self.disk = BusyDisk()
        clock: Any = self.later
        self.turn = Turn(clock, self.disk)
        effects: Any = self
        self.turn.bind(effects)
        self.partitions: list[HostedPartition] = []
        self.counted: list[tuple[str, int]] = []
        """The partitions whose leaders have counted their appends, and what of them was written."""
        self.failures: list[tuple[str, OSError]] = []
        self.unwritten: list[int] = []
        """At each time that something was sent: the records that were not written."""

    def host(self, topic: str, config: LogConfig | None = None, directory: str = "/d") -> HostedPartition:
        log = Log.open(
            self.disk, f"{directory}/{topic}-0", topic, 0, UUID(int=5), config or LogConfig(), 0,
            recovery_point=0, clean=True, new=True,
        )  # fmt: skip
        absent: Any = None
        place: Any = directory
        hosted = HostedPartition(topic, UUID(int=5), 0, absent, log, place, self._directory_failed)
        leader: Any = object()
        hosted.leader = leader
        self.partitions.append(hosted)
        return hosted

    def _directory_failed(self, directory: object, failure: OSError) -> None:
        """As `Replicas` does: nobody uses its partitions any more."""
        self.failures.append((str(directory), failure))
        for hosted in self.partitions:
            hosted.stale = hosted.stale or hosted.directory is directory

    def leader_has_appended(self, hosted: HostedPartition, leader: Any, now_ms: int) -> None:
        self.counted.append((hosted.topic, hosted.log.written_end_offset))

    def connection_closed(self, connection: ClientConnection) -> None: ...

    def sending(self) -> None:
        self.unwritten.append(sum(each.log.log_end_offset - each.log.written_end_offset for each in self.partitions))

    def content(self, hosted: HostedPartition) -> bytes:
        return self.disk.content(f"{hosted.log.directory}/{0:020d}.log")

    def end_turn(self) -> None:
        self.later.run()

    def end_writes(self) -> None:
        """The late writes end, and the turn in which that is reported."""
        self.disk.end_writes()
        self.later.run()
