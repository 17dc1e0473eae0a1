"""The `File` port on a file descriptor.

An open file is written by its node alone, so it keeps the size itself and never asks for it. It also knows how much
of it would survive a loss of power, and says so to the ledger whenever that changes; an append does not change it.

It must never be closed under somebody who still needs the descriptor (a sync in a thread, a response that is being
sent): those pin it, and `close` waits for them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from tanist.ports import Buffer, FileRange
from tanist.runtime.ports.descriptors import opening
from tanist.runtime.ports.synced_lengths import FileKey, SyncLedger

_VECTOR_MAX = 1024
"""IOV_MAX of Linux and macOS."""

SLICE_BYTES = 256 << 10
"""Large writes are made in slices of this. The kernel lets others have the processor between two calls, not within one;
where it has to find the memory first, a megabyte takes 2 ms."""

NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
"""Of `preadv`: read what is in memory, and say so if it is not (`BlockingIOError`)."""

_fdatasync = getattr(os, "fdatasync", os.fsync)


class DiskFile:
    """The `File` port on a file descriptor. The only writer of its file, so it keeps the size itself."""

    __slots__ = (
        "__weakref__", "_closing", "_ledger", "_nameless", "_path", "_pins", "_size", "_stable", "_synced", "failure",
        "fd", "key", "nowait",
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
        self._pins = 0
        self._closing = False
        self.fd = fd
        self.key = key
        self.failure: OSError | None = None
        """The first failed sync's error."""
        self.nowait = NOWAIT
        """0: its file system cannot say whether it would wait (tmpfs has all in memory)."""

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

    def truncate(self, size: int) -> None:
        if size < self._stable:
            self._disturb(size)
        os.ftruncate(self.fd, size)
        self._size = size

    def read_in_memory(self, view: memoryview, offset: int) -> int:
        """Read into `view` as far as no disk is waited for; gives the bytes, 0 at the end of the file.

        `BlockingIOError`: the first of them is not in memory. Where the file system cannot say, it may wait.
        """
        try:
            return os.preadv(self.fd, (view,), offset, self.nowait)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP or not self.nowait:
                raise
        self.nowait = 0
        return os.preadv(self.fd, (view,), offset)

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
            piece = buffers if left <= SLICE_BYTES else _first(buffers, SLICE_BYTES)
            written = os.pwritev(self.fd, piece, offset)
            offset += written
            if written == left:
                return offset
            left -= written
            buffers = _without(buffers, written)

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
