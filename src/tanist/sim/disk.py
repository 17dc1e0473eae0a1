"""The `Disk` port in virtual time, with a page cache that can be lost.

A write goes to the page cache and is seen at once; it is durable when a sync that began after it has ended. What a
loss of power leaves of the rest is up to chance, within what real file systems do: each unsynced write may have
reached the disk or not, or in part (torn at a sector); the size of the file follows; names that were never synced may
be gone. A crash of the process alone loses nothing.

Faults: full, failing, slow. They are switches of the disk; the node sees `OSError`, or waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from tanist.ports import Buffer, File
from tanist.sim.scheduler import Process, Scheduler

T = TypeVar("T")

SECTOR_BYTES = 512


class _Inode:
    """A file: what the page cache shows, what is on the disk, and the writes in between."""

    __slots__ = ("data", "durable", "named", "settled", "synced_bytes", "unsynced")

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b""
        self.named = False
        """Its name is on the disk as well: from the first sync on."""
        self.unsynced: list[tuple[int, bytes] | int] = []
        """Writes (offset, data) and truncations (size), in order, since the last sync that has ended."""
        self.settled = 0
        """How many changes have been made durable since the file exists; `unsynced` begins after them."""
        self.synced_bytes = 0
        """Length of the prefix that no later write or truncation has touched since it was synced."""

    def lose_power(self, chance: random.Random) -> bool:
        """Keep a legal subset of what was not synced; says whether the file is still there."""
        if not self.named and chance.random() < 0.5:
            return False
        kept = bytearray(self.durable)
        # Journalled file systems keep the order of size changes; data within them arrives in any order.
        for change in self.unsynced:
            if isinstance(change, int):
                if chance.random() < 0.5:
                    del kept[change:]
                continue
            offset, data = change
            fate = chance.random()
            if fate < 0.4:
                continue
            if fate < 0.6 and len(data) > 1:
                cut = chance.randrange(1, len(data))
                data = data[: cut - cut % SECTOR_BYTES] if cut >= SECTOR_BYTES else data[:cut]
            if len(kept) < offset:
                kept.extend(bytes(offset - len(kept)))
            kept[offset : offset + len(data)] = data
        self.data = kept
        self.durable = bytes(kept)
        self.synced_bytes = len(kept)
        self.unsynced = []
        self.named = True
        return True


class SimDisk:
    """The file system of one host. It outlives the processes; `view` gives the port of one of them."""

    def __init__(self, scheduler: Scheduler, seed: int) -> None:
        self._scheduler = scheduler
        self.chance = random.Random(seed)
        self._files: dict[str, _Inode] = {}
        self._directories: set[str] = {"", "/"}
        self.sync_us: tuple[int, int] = (200, 3_000)
        self.full = False
        self.failing: set[str] = set()
        """Folders below which every access fails."""
        self.lying = False
        """A disk that says "synced" and has done nothing (A36)."""

    def view(self, process: Process) -> SimDiskView:
        return SimDiskView(self, self._scheduler, process)

    def lose_power(self) -> None:
        """The page cache is gone."""
        for path, inode in sorted(self._files.items()):
            if not inode.lose_power(self.chance):
                del self._files[path]

    def corrupt(self, path: str, offset: int, mask: int = 0xFF) -> None:
        """Bit rot: flip bits of one byte, in the cache and on the disk."""
        inode = self._files[path]
        inode.data[offset] ^= mask
        inode.durable = bytes(inode.data[: len(inode.durable)])

    def paths(self) -> list[str]:
        return sorted(self._files)

    def content(self, path: str) -> bytes:
        return bytes(self._files[path].data)

    def check(self, path: str, *, writing: bool = False) -> None:
        """Raise what a fault makes of an access."""
        for folder in self.failing:
            if path.startswith(folder):
                raise OSError(5, f"input/output error: {path}")
        if writing and self.full:
            raise OSError(28, f"no space left on device: {path}")


class SimFile:
    """An open file."""

    __slots__ = ("_disk", "_inode", "_path")

    def __init__(self, disk: SimDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        return len(self._inode.data)

    @property
    def synced(self) -> int:
        return self._inode.synced_bytes

    def read(self, offset: int, length: int) -> bytes:
        self._disk.check(self._path)
        return bytes(self._inode.data[offset : offset + length])

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        self._disk.check(self._path, writing=True)
        inode = self._inode
        data = b"".join(bytes(buffer) for buffer in buffers)
        if len(inode.data) < offset:
            inode.data.extend(bytes(offset - len(inode.data)))
        inode.data[offset : offset + len(data)] = data
        inode.unsynced.append((offset, data))
        inode.synced_bytes = min(inode.synced_bytes, offset)

    def truncate(self, size: int) -> None:
        self._disk.check(self._path, writing=True)
        inode = self._inode
        if size < len(inode.data):
            del inode.data[size:]
        else:
            inode.data.extend(bytes(size - len(inode.data)))
        inode.unsynced.append(size)
        inode.synced_bytes = min(inode.synced_bytes, size)

    def close(self) -> None:
        """Nothing is lost by closing."""


class SimDiskView:
    """`ports.Disk` of one process."""

    def __init__(self, disk: SimDisk, scheduler: Scheduler, process: Process) -> None:
        self._disk = disk
        self._scheduler = scheduler
        self._process = process

    def open(self, path: str, *, create: bool = True) -> SimFile:
        disk = self._disk
        disk.check(path)
        inode = disk._files.get(path)
        if inode is None:
            if not create:
                raise FileNotFoundError(2, f"no such file: {path}")
            disk.check(path, writing=True)
            self._require_folder(path)
            inode = disk._files[path] = _Inode()
        return SimFile(disk, path, inode)

    def exists(self, path: str) -> bool:
        self._disk.check(path)
        return path in self._disk._files or self.is_directory(path)

    def list(self, path: str) -> list[str]:
        self._disk.check(path)
        if not self.is_directory(path):
            raise FileNotFoundError(2, f"no such folder: {path}")
        prefix = path.rstrip("/") + "/"
        names = {p[len(prefix) :].split("/", 1)[0] for p in self._disk._files if p.startswith(prefix)}
        names |= {p[len(prefix) :].split("/", 1)[0] for p in self._disk._directories if p.startswith(prefix)}
        return sorted(name for name in names if name)

    def is_directory(self, path: str) -> bool:
        return path.rstrip("/") in self._disk._directories

    def make_directory(self, path: str) -> None:
        self._disk.check(path, writing=True)
        parts = path.rstrip("/").split("/")
        for count in range(1, len(parts) + 1):
            self._disk._directories.add("/".join(parts[:count]))

    def remove(self, path: str) -> None:
        self._disk.check(path)
        self._disk._files.pop(path, None)
        prefix = path.rstrip("/") + "/"
        for name in [p for p in self._disk._files if p.startswith(prefix)]:
            del self._disk._files[name]
        self._disk._directories -= {p for p in self._disk._directories if p == path.rstrip("/") or p.startswith(prefix)}

    def rename(self, source: str, target: str) -> None:
        disk = self._disk
        disk.check(source)
        if source in disk._files:
            self._require_folder(target)
            disk._files[target] = disk._files.pop(source)
            return
        if not self.is_directory(source):
            raise FileNotFoundError(2, f"no such file or folder: {source}")
        old, new = source.rstrip("/") + "/", target.rstrip("/") + "/"
        for name in [p for p in disk._files if p.startswith(old)]:
            disk._files[new + name[len(old) :]] = disk._files.pop(name)
        for name in [p for p in disk._directories if p.startswith(old)]:
            disk._directories.discard(name)
            disk._directories.add(new + name[len(old) :])
        disk._directories.discard(source.rstrip("/"))
        disk._directories.add(target.rstrip("/"))

    def read_file(self, path: str) -> bytes:
        self._disk.check(path)
        inode = self._disk._files.get(path)
        if inode is None:
            raise FileNotFoundError(2, f"no such file: {path}")
        return bytes(inode.data)

    def write_file(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        disk = self._disk
        disk.check(path, writing=True)
        self._require_folder(path)
        before = disk._files.get(path)
        inode = _Inode()
        inode.data = bytearray(data)
        if sync:
            inode.durable = bytes(data)
            inode.synced_bytes = len(data)
            inode.named = True
        else:
            # Replaced by a rename: after a loss of power there is the old content or the new, never a mixture.
            inode.durable = before.durable if before is not None else b""
            inode.named = before is not None and before.named
            inode.unsynced = [] if disk.chance.random() < 0.5 else [0, (0, bytes(data))]
            if inode.unsynced:
                inode.durable = bytes(data)
                inode.unsynced = []
                inode.named = True
        disk._files[path] = inode

    def sync(self, files: Sequence[File], done: Callable[[OSError | None], None]) -> None:
        disk = self._disk
        low, high = disk.sync_us
        delay_us = disk.chance.randint(low, high)
        marks: list[tuple[_Inode, int, bytes, str]] = []
        for file in files:
            inode = _inode_of(file)
            marks.append((inode, inode.settled + len(inode.unsynced), bytes(inode.data), file.path))

        def finish() -> None:
            try:
                for inode, up_to, data, path in marks:
                    disk.check(path)
                    if not disk.lying:
                        _settle(inode, up_to, data)
            except OSError as failure:
                done(failure)
                return
            done(None)

        self._scheduler.after(delay_us, finish, self._process)

    def sync_now(self, file: File) -> None:
        self._disk.check(file.path)
        inode = _inode_of(file)
        _settle(inode, inode.settled + len(inode.unsynced), bytes(inode.data))

    def run(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        def work() -> None:
            try:
                result: T | BaseException = job()
            except Exception as failure:
                result = failure
            done(result)

        self._scheduler.after(self._disk.chance.randint(100, 2_000), work, self._process)

    def _require_folder(self, path: str) -> None:
        folder = path.rsplit("/", 1)[0] if "/" in path else ""
        if not self.is_directory(folder):
            raise FileNotFoundError(2, f"no such folder: {folder}")


def _inode_of(file: File) -> _Inode:
    if not isinstance(file, SimFile):
        raise TypeError(f"{file!r} is no file of this disk")
    return file._inode


def _settle(inode: _Inode, up_to: int, data: bytes) -> None:
    """Changes below `up_to` are durable now; `data` is what the file was when the sync began."""
    count = up_to - inode.settled
    inode.named = True
    if count < 0:
        return  # a later sync has ended before this one
    inode.durable = data
    inode.settled = up_to
    del inode.unsynced[:count]
    # A change made while the sync was under way may have touched what was synced.
    intact = len(data)
    for change in inode.unsynced:
        intact = min(intact, change if isinstance(change, int) else change[0])
    inode.synced_bytes = intact
