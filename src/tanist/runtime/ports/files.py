"""The `File` port on a file descriptor.

An open file is written by its node alone, so it keeps the size itself and never asks for it. It also knows how much
of it would survive a loss of power, and says so to the ledger whenever that changes; an append does not change it.

It must never be closed under somebody who still needs the descriptor (a sync in a thread, a response that is being
sent): those pin it, and `close` waits for them.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from tanist.ports import Buffer, FileRange
from tanist.runtime.ports.descriptors import opening
from tanist.runtime.ports.kernel import let_others_run
from tanist.runtime.ports.synced_lengths import FileKey, SyncLedger

_VECTOR_MAX = 1024
"""IOV_MAX of Linux and macOS."""

WARM_BYTES = 4 << 20
"""So much of what was written last is taken to be in the page cache, without asking for each answer,"""
WARM_S = 10.0
"""for so long after the file was last written."""

SLICE_BYTES = 128 << 10
"""Large writes are made in slices of this, if copying is slow,"""
LONG_S = 0.0005
"""so slow that a write would hold the processor for longer. The kernel does not end one for others that wait: the
leader of a follower that caught up on the same machine waited for its megabytes, up to 2.4 ms each."""

_fdatasync = getattr(os, "fdatasync", os.fsync)


class DiskFile:
    """The `File` port on a file descriptor. The only writer of its file, so it keeps the size itself."""

    __slots__ = (
        "__weakref__", "_closing", "_ledger", "_nameless", "_path", "_pins", "_size", "_stable", "_synced",
        "_warm_from", "_written_s", "failure", "fd", "key",
    )  # fmt: skip

    def __init__(self, ledger: SyncLedger | None, path: str, fd: int, key: FileKey, size: int) -> None:
        self._ledger = ledger
        self._path = path
        self._size = size
        self._synced = 0
        if ledger is not None:
            self._synced = min(ledger.synced(key), size)
            ledger.adopt(key, self._synced)
        self._stable = self._synced
        """Bytes from the start that have not changed since the last sync began; `_synced` <= `_stable` <= `_size`."""
        self._nameless = size == 0
        """Made just now, perhaps: its name is to be made durable with its content."""
        self._warm_from = size
        """Where the last bytes begin that this process has written, 4 to 8 MB at most."""
        self._written_s = 0.0
        self._pins = 0
        self._closing = False
        self.fd = fd
        self.key = key
        self.failure: OSError | None = None
        """The first failed sync's error."""

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        return self._size

    @property
    def synced(self) -> int:
        return self._synced

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self.fd, max(0, min(length, self._size - offset)), offset)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        if offset < self._stable:
            self._disturb(offset)
        end = offset
        try:
            for at in range(0, len(buffers), _VECTOR_MAX):
                end = self._write_whole(end, buffers[at : at + _VECTOR_MAX])
        except OSError:
            self._undo(offset)
            raise
        if end > self._size:
            self._size = end
            if end - self._warm_from > 2 * WARM_BYTES:
                self._warm_from = end - WARM_BYTES
        self._written_s = time.monotonic()

    def truncate(self, size: int) -> None:
        if size < self._stable:
            self._disturb(size)
        os.ftruncate(self.fd, size)
        self._size = size
        self._warm_from = min(self._warm_from, size)

    def written_lately(self, offset: int) -> bool:
        """Whether what stands from here on is in the page cache, for it has just been written."""
        return offset >= self._warm_from and time.monotonic() - self._written_s < WARM_S

    def close(self) -> None:
        """Close once nobody needs the descriptor any more: a sync that runs, a response that is being sent."""
        if self._closing:
            return
        self._closing = True
        if self._pins == 0:
            self._close_now()

    def pin(self) -> None:
        """Keep the descriptor open until `unpin`, whatever `close` says."""
        if self.fd < 0:
            raise OSError(errno.EBADF, "the file is closed", self._path)
        self._pins += 1

    def unpin(self) -> None:
        self._pins -= 1
        if self._pins == 0 and self._closing:
            self._close_now()

    def sync_begins(self) -> None:
        """A sync is about to start: what is there now will be durable, unless it changes before the sync is done."""
        self._stable = self._size

    def sync_blocking(self) -> None:
        """Make the file, and its name if it is new, durable. Changes no state: worker threads call it."""
        _fdatasync(self.fd)
        if self._nameless:
            folder = os.path.dirname(self._path)
            sync_folder(folder)
            sync_folder(os.path.dirname(folder))

    def sync_succeeded(self) -> None:
        self._nameless = False
        self._note_synced(self._stable)

    def _disturb(self, offset: int) -> None:
        # Before the change, not after: a crash between the two must not leave the ledger claiming too much.
        self._stable = offset
        if offset < self._synced:
            self._note_synced(offset)

    def _note_synced(self, length: int) -> None:
        if length != self._synced:
            self._synced = length
            if self._ledger is not None:
                self._ledger.record(self.key, length)

    def _write_whole(self, offset: int, buffers: Sequence[Buffer]) -> int:
        """`pwritev` until everything is written; gives the end."""
        left = sum(map(len, buffers))
        while True:
            large = left > SLICE_BYTES
            written = _memory.write(self.fd, buffers, offset, left) if large else os.pwritev(self.fd, buffers, offset)
            offset += written
            if written == left:
                return offset
            left -= written
            buffers = _without(buffers, written)
            let_others_run()

    def _undo(self, offset: int) -> None:
        """A write has failed half-way: leave no torn end behind, if the disk lets us."""
        if offset >= self._size:
            try:
                os.ftruncate(self.fd, self._size)
            except OSError:
                return  # recovery at the next start finds the torn end by its CRC

    def _close_now(self) -> None:
        fd, self.fd = self.fd, -1
        os.close(fd)


def disk_file(chunk: FileRange) -> DiskFile:
    """The file of a range that is to be sent."""
    file = chunk.file
    if type(file) is not DiskFile and not isinstance(file, DiskFile):  # (a disk with faults has others)
        raise TypeError(f"cannot send from a {type(file).__name__}: it is not a file of the real disk")
    return file


class _Memory:
    """How fast the page cache takes what is written. It may be slow for a while: a virtual machine whose memory is
    given to it page by page as it touches them takes ten times as long for new ones."""

    def __init__(self) -> None:
        self._s_per_byte = 0.0
        """Of processor time, in the last large write."""

    def write(self, fd: int, buffers: Sequence[Buffer], offset: int, size: int) -> int:
        """`pwritev` of all, more than a slice, or of a slice if all would take long; gives the bytes written."""
        if size * self._s_per_byte > LONG_S:
            buffers = _first(buffers, SLICE_BYTES)
        began_s = time.thread_time()
        written = os.pwritev(fd, buffers, offset)
        self._s_per_byte = (time.thread_time() - began_s) / max(1, written)
        return written


_memory = _Memory()


def _first(buffers: Sequence[Buffer], size: int) -> list[Buffer]:
    """So many bytes from the beginning of all buffers, which have more."""
    found: list[Buffer] = []
    for buffer in buffers:
        if len(buffer) >= size:
            found.append(memoryview(buffer)[:size])
            break
        found.append(buffer)
        size -= len(buffer)
    return found


def _without(buffers: Sequence[Buffer], size: int) -> list[Buffer]:
    """All but so many bytes from the beginning."""
    rest: list[Buffer] = []
    for buffer in buffers:
        if size >= len(buffer):
            size -= len(buffer)
        else:
            rest.append(memoryview(buffer)[size:] if size else buffer)
            size = 0
    return rest


def write_whole(path: str, data: Buffer, *, sync: bool) -> os.stat_result:
    """Make or empty a file, and write all of it."""
    fd = opening(lambda: os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644))
    try:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(fd, left) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None  # write knows the descriptor only
        if sync:
            _fdatasync(fd)
        return os.fstat(fd)
    finally:
        os.close(fd)


def replace_file(path: str, data: Buffer) -> None:
    """Put a file in place durably: a crash leaves the old content or the new."""
    passing = f"{path}.tmp"
    try:
        write_whole(passing, data, sync=True)
        os.replace(passing, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(passing)
        raise OSError(error.errno, error.strerror, path) from None
    sync_folder(os.path.dirname(path))


def sync_path(path: str) -> None:
    """Make the content of a file durable. `FileNotFoundError` if there is none."""
    _sync_opened(path, os.O_RDONLY, _fdatasync)


def sync_folder(path: str) -> None:
    """Make the names in a folder durable. One that was renamed or removed meanwhile has none."""
    with suppress(FileNotFoundError):
        _sync_opened(path or ".", os.O_RDONLY | os.O_DIRECTORY, os.fsync)


def _sync_opened(path: str, flags: int, sync: Callable[[int], None]) -> None:
    fd = opening(lambda: os.open(path, flags | os.O_CLOEXEC))
    try:
        sync(fd)
    finally:
        os.close(fd)
