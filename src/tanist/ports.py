"""The whole outside world of a node, as four protocols: `Clock`, `Disk`, `Network`, `Random`.

All input and output of a node goes through these. `tanist.runtime` implements them with real sockets, files and clocks;
`tanist.sim` implements them with virtual ones. One contract suite (`tests/ports/`) holds both sets to the behaviour
that this module describes.

Rules for every implementation:

* One thread. Callbacks are never re-entrant: a port queues a callback and runs it from its own loop, never from inside
  the call that asked for it.
* Nothing here blocks but `File.read`, `File.write` and the directory operations, which touch the page cache; a sync
  never blocks, it reports through its `done` callback.
* Failures of the disk are `OSError`; failures of the network are `on_close(reason)`. Nothing else is raised.
* An `OSError` that `is_descriptor_shortage` is no failure of the disk: too many files are open.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")

Buffer: TypeAlias = bytes | bytearray | memoryview
"""What can be written to a file or a socket without being copied first."""


_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE})


def is_descriptor_shortage(error: BaseException) -> bool:
    """Whether the process, or the system, has as many files open as it may. The disk is sound."""
    return isinstance(error, OSError) and error.errno in _SHORTAGE


class Timer(Protocol):
    """A callback that `Clock.call_at` has promised to run."""

    def cancel(self) -> None:
        """Forget the callback. Harmless when it has run or was cancelled before."""


class Clock(Protocol):
    """Time and timers. Milliseconds throughout."""

    def now_ms(self) -> int:
        """Monotonic time in ms. Constant within one callback is allowed; going backwards is not."""

    def wall_ms(self) -> int:
        """Time of day in ms since 1970-01-01 UTC. May jump either way."""

    def now_ns(self) -> int:
        """Monotonic time in ns, anew at each call: to measure the loop's steps by. In the simulator they take none."""

    def call_at(self, when_ms: int, callback: Callable[[], None]) -> Timer:
        """Run `callback` once `now_ms() >= when_ms`, in order of `when_ms`, then of the call."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run `callback` at the end of this turn: after the input that is at hand, before waiting for more.

        This is where a node writes the appends and sends the answers that a burst of requests has produced.
        """


class File(Protocol):
    """One open file. Offsets and sizes in bytes."""

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def synced(self) -> int:
        """Bytes from the start of the file that are known to survive a loss of power."""

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes at `offset`; shorter at the end of the file."""

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        """Write the buffers one after the other at `offset`, whole. `OSError` when the disk fails or is full."""

    def truncate(self, size: int) -> None:
        """Cut (or extend with zeros) to `size` bytes."""

    def close(self) -> None: ...


NEVER_LARGE = 1 << 62
"""More bytes than any write has."""


class LateWrite:
    """A write that `Disk.write_later` was given."""

    __slots__ = ("_buffers", "_error", "_file", "_offset")

    def __init__(self, file: File, offset: int, buffers: Sequence[Buffer]) -> None:
        self._file = file
        self._offset = offset
        self._buffers: Sequence[Buffer] | None = buffers
        """None once they are written."""
        self._error: OSError | None = None

    def finish(self) -> None:
        """Make the write now if it has not begun, or wait for its end; raise its `OSError` if it has failed."""
        buffers, self._buffers = self._buffers, None
        if buffers is not None:
            try:
                self._file.write(self._offset, buffers)
            except OSError as error:
                self._error = error
        if self._error is not None:
            raise self._error


class Disk(Protocol):
    """A file system. Paths are `/`-separated strings, as given to the node in its configuration."""

    @property
    def large_write_bytes(self) -> int:
        """A write of so many bytes or more may hold the loop up for long: it is one for `write_later`."""

    def open(self, path: str, *, create: bool = True) -> File:
        """Open for reading and writing; `FileNotFoundError` if it is absent and `create` is false."""

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted. `FileNotFoundError` if there is none."""

    def is_directory(self, path: str) -> bool: ...

    def crowded(self) -> bool:
        """Whether so many files are open that callers should close files rather than keep them open."""

    def make_directory(self, path: str) -> bool:
        """Make the folder and its parents, and say whether it was made; no error when it is there."""

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all it holds. No error when it is absent."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder, replacing a file of the target's name, atomically."""

    def read_file(self, path: str) -> bytes:
        """A whole (small) file. `FileNotFoundError` when absent."""

    def write_file(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        """Replace a small file: either the old or the new content survives a crash of the process.

        With `sync` the new content is durable on return, and a loss of power leaves the old or the new as well.
        Without, it may leave an empty file: its name can reach the disk before its content does (KAFKA-15312).
        """

    def make_durable(self, path: str) -> None:
        """Make the content and the name of a file durable that `write_file` has written without `sync`."""

    def write_file_later(self, path: str, data: Buffer, done: Callable[[OSError | None], None]) -> None:
        """As `write_file` without `sync`, off the loop; then call `done` in a later turn.

        Called on the loop. Where `write_file` is called for the same path before `done` is, its content is what stays.
        """

    def write_later(
        self, file: File, offset: int, buffers: Sequence[Buffer], done: Callable[[OSError | None], None]
    ) -> LateWrite:
        """As `File.write`, off the loop; then call `done` in a later turn. The memory must stay as it is until then.

        Until `done` or `finish`, the file is the writer's: nobody else may write, truncate, sync or close it.
        """

    def sync(self, files: Sequence[File], done: Callable[[OSError | None], None]) -> None:
        """Make the present content of `files` durable, off the loop; then call `done` in a later turn."""

    def sync_now(self, file: File) -> None:
        """Make the file durable before returning. For start and shut-down, and the quorum's votes."""

    def run(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        """Run `job` off the loop (a thread; in the simulator, later), then call `done` with its result or exception."""

    def run_now(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Run all jobs, several at a time, before returning; then raise what the first that failed has raised.

        For shut-down: each job waits for the disk, and together they wait less.
        """


@dataclass(slots=True, unsafe_hash=True)
class FileRange:
    """Bytes of a file, to be sent without passing through the process (sendfile). It is never changed.

    Not frozen, because one is made for every fetch: that costs 0.1 us, and 0.4 if Python has to forbid the change.
    """

    file: File
    offset: int
    length: int


Chunk: TypeAlias = bytes | bytearray | memoryview | FileRange
"""A piece of a response."""


class Connection(Protocol):
    """One established or pending stream connection that carries length-prefixed frames."""

    @property
    def peer(self) -> str:
        """Address of the other side, `host:port`, for people to read."""

    @property
    def peer_identity(self) -> str | None:
        """The subject of the other side's certificate, as RFC 2253 writes it; None: it has shown none."""

    @property
    def pending_bytes(self) -> int:
        """Bytes accepted by `send` and not yet handed to the network."""

    def send(self, chunks: Sequence[Chunk]) -> None:
        """Queue the chunks, in order. The caller has put the frame's 4-byte length in. After a close: dropped."""

    def set_max_frame_bytes(self, size: int) -> None:
        """From the next frame on, one that declares more closes the connection unread."""

    def pause(self) -> None:
        """Deliver no more frames until `resume`: so a node holds back a client that sends too much."""

    def resume(self) -> None: ...

    def close(self) -> None:
        """Close now. `on_close` is still called, once, in a later turn."""


REFUSED = "refused"
"""The reason for `ConnectionHandler.on_close` when no process listens at the address."""


TLS_CLIENT = "a TLS client came to a port without TLS"
"""In the reason for `ConnectionHandler.on_close` when the first bytes of the other side were those of a TLS client."""


class TlsProblem(ValueError):
    """The properties of a TLS profile cannot be used: what is wrong, for an operator. It never holds a secret."""


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """Whom the certificate of a TLS profile names."""

    subject: str
    """As RFC 2253 writes it."""
    hosts: tuple[str, ...]
    """Names (also with a leading `*.`) and addresses that clients take for this node's."""
    expires_ms: int
    """Wall-clock time from which on nobody accepts it."""


class ConnectionHandler(Protocol):
    """The node's handler of a connection."""

    def on_open(self, connection: Connection) -> None:
        """An outgoing connection is established (incoming ones are from the start)."""

    def on_frame(self, frame: memoryview) -> None:
        """One whole frame without its length prefix, in writable memory.

        The memory is valid until the `call_soon` callbacks scheduled by then have run, and if they pause the
        connection, until it is resumed; keep a copy beyond that.
        """

    def on_close(self, reason: str) -> None:
        """The connection has ended, for whatever reason: refused, reset, closed, oversized frame. Called once.

        The reason is for people, with exceptions: it contains `REFUSED` if, and only if, no process listens there, and
        `TLS_CLIENT` if the other side has begun a TLS handshake on a connection without TLS.
        """


class Listener(Protocol):
    """A bound socket."""

    @property
    def port(self) -> int: ...

    def open(self) -> None:
        """Listen from now on, if it does not yet. `OSError` if another process has come to listen there."""

    def pause(self) -> None:
        """Accept no more until `resume`: who connects waits. Within `accept`, that is the last one for now."""

    def resume(self) -> None: ...

    def close(self) -> None:
        """Stop accepting. Accepted connections stay open; those that wait to be accepted are reset."""


class Network(Protocol):
    """Streams between nodes and clients, plain or by TLS.

    TLS is by *profiles*: named properties, of which an implementation makes what handshakes need.
    """

    def bind(
        self,
        host: str,
        port: int,
        accept: Callable[[Connection], ConnectionHandler],
        *,
        max_frame_bytes: int,
        tls: str | None = None,
    ) -> Listener:
        """Take an address; connections are refused until `Listener.open`. Port 0 picks one. `OSError` if taken.

        `accept` gives the handler of each new connection. With `tls`, the name of a profile, it is called after the
        handshake; connections that do not finish one are closed, and no handler hears of them.

        A frame that declares more than `max_frame_bytes` (or a negative length) closes its connection unread.
        """

    def connect(
        self, host: str, port: int, handler: ConnectionHandler, *, max_frame_bytes: int, tls: str | None = None
    ) -> Connection:
        """Start connecting; `on_open` or `on_close` follows in a later turn. Frames sent before are queued.

        With `tls` it is open after the handshake, in which the other side has proved to be `host`.
        """

    def set_tls_profile(
        self, name: str, properties: Mapping[str, str], *, between_nodes: bool, only_try: bool = False
    ) -> TlsIdentity | None:
        """Use these `ssl.*` properties for the handshakes that begin from now on; gives whom its certificate names.

        `TlsProblem` if they cannot be used, or may not take the place of the present ones: then those stay. With
        `only_try` they stay in any case. `between_nodes`: nodes dial each other by it, so they must accept themselves.
        """


class Random(Protocol):
    """The rng of a node: in the simulator it comes from the seed."""

    def below(self, n: int) -> int:
        """A uniform integer in [0, n). `n` >= 1."""

    def bytes(self, n: int) -> bytes: ...
