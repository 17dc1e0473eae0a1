"""Faulty disks of a running node: the same files and the same disk, of another class while they have a fault.

`apply_disk_faults` makes a `FaultyDisk` of the node's `RealDisk`, and a `FaultyFile` of each open file; healed, they
have their own classes again. So a disk without a fault pays nothing, not even a test.

* Full: every operation that needs space (a write beyond a file's end, a new name, a small file's new content) fails
  with ENOSPC. Operations that need none go on: reads, removals, cutting, overwriting.
* Slow: each sync takes so much longer; with `writes`, each write as well, and with small ones the whole node. A sync
  that waits goes on at once when the disk is healed.
* Read-only: every change fails with EROFS (writes, cutting, new and removed names). Reads go on, and so do syncs, which
  have nothing to write. A kernel remounts a file system like that when it finds it damaged.
* Failed: everything below fails with EIO, reads and what is being sent to clients included.

A file whose sync has failed stays failed, healed or not (`group_sync`): a node has to give the directory up, and is
restarted when it is mended.
"""

from __future__ import annotations

import builtins
import errno
import os
import threading
from collections.abc import Callable, Sequence
from typing import ClassVar

from tanist.ports import Buffer
from tanist.runtime.faults.settings import BadDisk, DiskState
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.files import DiskFile


class _Troubles:
    """The fault, and where it is."""

    def __init__(self, faults: Sequence[BadDisk]) -> None:
        self._faults = [(_folder(fault.log_dir), fault) for fault in faults]
        self._ended = threading.Event()

    def end(self) -> None:
        """Other troubles have taken their place, or none: what waits goes on."""
        self._ended.set()

    def _refuse(self, path: str, state: DiskState, number: int) -> None:
        if any(fault.state == state and _is_below(path, folder) for folder, fault in self._faults):
            raise OSError(number, os.strerror(number), path)

    def check(self, path: str) -> None:
        """Of any access."""
        self._refuse(path, "failed", errno.EIO)

    def check_change(self, path: str) -> None:
        """Of the operations that change something."""
        self.check(path)
        self._refuse(path, "read-only", errno.EROFS)

    def check_space(self, path: str) -> None:
        """Of the changes that take space on the disk."""
        self.check_change(path)
        self._refuse(path, "full", errno.ENOSPC)

    def wait(self, path: str, *, write: bool) -> None:
        """As long as a slow disk takes."""
        late_ms = 0
        for folder, fault in self._faults:
            if fault.state == "slow" and (fault.writes or not write) and _is_below(path, folder):
                late_ms = max(late_ms, fault.latency_ms)
        if late_ms:
            self._ended.wait(late_ms / 1000)


class FaultyFile(DiskFile):
    """An open file on a disk with troubles. Each set of troubles has a subclass, for a file has no spare slot."""

    __slots__ = ()
    troubles: ClassVar[_Troubles]

    @property
    def fd(self) -> int:  # type: ignore[override]
        """Whatever needs the descriptor needs the disk: reads, writes, syncs, and what is sent to clients."""
        self.troubles.check(self._path)
        return _descriptor(self)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        troubles = getattr(self, "troubles", None)  # a thread may write, and meanwhile the disk be well again
        if troubles is not None:
            if offset + sum(map(len, buffers)) > self._size:
                troubles.check_space(self._path)
            else:
                troubles.check_change(self._path)
            troubles.wait(self._path, write=True)
        DiskFile.write(self, offset, buffers)

    def truncate(self, size: int) -> None:
        self.troubles.check_change(self._path)
        DiskFile.truncate(self, size)

    def sync_blocking(self) -> None:
        self.troubles.wait(self._path, write=False)
        DiskFile.sync_blocking(self)

    def pin(self) -> None:
        if _descriptor(self) < 0:
            raise OSError(errno.EBADF, "the file is closed", self._path)
        self._pins += 1

    def _close_now(self) -> None:
        self.__class__ = DiskFile  # type: ignore[assignment]
        self._close_now()


_descriptor: Callable[[DiskFile], int] = DiskFile.__dict__["fd"].__get__
"""The file's own, whatever is wrong with its disk."""


class FaultyDisk(RealDisk):
    """A disk with troubles. Another thread may end them halfway through a method: none of them calls `super()`."""

    troubles: _Troubles
    file_class: type[FaultyFile]

    def open(self, path: str, *, create: bool = True) -> DiskFile:
        self.troubles.check(path)
        if create and not os.path.exists(path):
            self.troubles.check_space(path)
        file = RealDisk.open(self, path, create=create)
        if isinstance(self, FaultyDisk):
            file.__class__ = self.file_class
        return file

    def exists(self, path: str) -> bool:
        self.troubles.check(path)
        return RealDisk.exists(self, path)

    def list(self, path: str) -> builtins.list[str]:
        self.troubles.check(path)
        return RealDisk.list(self, path)

    def make_directory(self, path: str) -> bool:
        self.troubles.check_space(path)
        return RealDisk.make_directory(self, path)

    def remove(self, path: str) -> None:
        self.troubles.check_change(path)
        RealDisk.remove(self, path)

    def rename(self, source: str, target: str) -> None:
        self.troubles.check_change(source)
        RealDisk.rename(self, source, target)

    def read_file(self, path: str) -> bytes:
        self.troubles.check(path)
        return RealDisk.read_file(self, path)

    def make_durable(self, path: str) -> None:
        self.troubles.check(path)
        self.troubles.wait(path, write=False)
        RealDisk.make_durable(self, path)

    def _write_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        self.troubles.check_space(path)
        self.troubles.wait(path, write=not sync)
        RealDisk._write_file(self, path, data, sync=sync)


def apply_disk_faults(disk: RealDisk, faults: Sequence[BadDisk]) -> None:
    """Make the disk, and all its files that are open, as bad as that; well again without faults."""
    if isinstance(disk, FaultyDisk):
        disk.troubles.end()
    if not faults:
        if isinstance(disk, FaultyDisk):
            for file in disk.open_files:
                file.__class__ = DiskFile
            disk.__class__ = RealDisk  # type: ignore[assignment]
        return
    found = _Troubles(faults)
    disk.__class__ = FaultyDisk
    if not isinstance(disk, FaultyDisk):
        raise TypeError(f"a {type(disk).__name__} cannot have faults")
    disk.troubles = found
    disk.file_class = type("FaultyFile", (FaultyFile,), {"__slots__": (), "troubles": found})
    for file in disk.open_files:
        file.__class__ = disk.file_class


def _folder(log_dir: str | None) -> str | None:
    return None if log_dir is None else os.path.abspath(log_dir)


def _is_below(path: str, folder: str | None) -> bool:
    if folder is None:
        return True
    path = os.path.abspath(path)
    return path == folder or path.startswith(folder + os.sep)
