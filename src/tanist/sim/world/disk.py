"""The `Disk` port in virtual time, over the page cache of a host that can be lost (`page_cache.py`).

Owns paths, open files, the time that a sync takes, and the faults: full, failing, slow, lying. They are switches of the
disk; the node sees `OSError`, or waits. A process may also die in the middle of a turn, in any of the changes that it
makes here (`Process.fuse`), and then leaves a write half done.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from tanist.ports import NEVER_LARGE, Buffer, File, LateWrite
from tanist.sim.world.error_numbers import EBADF, EEXIST, EIO, EISDIR, ENOENT, ENOSPC
from tanist.sim.world.page_cache import Folder, Inode, PageCache
from tanist.sim.world.scheduler import Process, Scheduler

T = TypeVar("T")

_OF_LOGS = (".log", "-delete")
"""Names of segments, and of the folders of logs that are to go."""


def _nobody_listens() -> None:
    """Nothing happens when a log changes."""


class SimDisk:
    """The file system of one host. It outlives the processes; `view` gives the port of one of them."""

    def __init__(self, scheduler: Scheduler, rng: random.Random) -> None:
        self.scheduler = scheduler
        self.rng = rng
        self.cache = PageCache(rng)
        self.generation = 0
        """Number of losses of power: a sync from before one has no effect."""
        self.sync_us: tuple[int, int] = (200, 3_000)
        self.full = False
        self.failing: list[str] = []
        """Folders below which every access fails."""
        self.large_write_bytes = NEVER_LARGE
        """Writes from so many bytes on are made off the loop."""
        self.lying = False
        """The disk reports "synced" and has done nothing (A36)."""
        self.on_log_change: Callable[[], None] = _nobody_listens
        """Called when a segment is made, truncated, renamed or removed, or the folder of a log is to go."""

    @property
    def fails(self) -> bool:
        """Whether some write to it would fail."""
        return self.full or bool(self.failing)

    def changed(self, path: str) -> None:
        """This file is another one now."""
        if any(part in path for part in _OF_LOGS):
            self.on_log_change()

    def view(self, process: Process) -> SimDiskView:
        return SimDiskView(self, process)

    def lose_power(self) -> None:
        """The page cache is gone."""
        self.generation += 1
        self.cache.lose_power(self.scheduler.now_us)

    def sync_all(self) -> None:
        """Sync all names, as the command `sync` does; files keep their unsynced data."""
        self.cache.commit_names()

    def replace(self, path: str) -> None:
        """The disk that holds this folder is taken out. Names of the others reach their disks meanwhile."""
        self.cache.commit_names()
        folder = self.find(path)
        if isinstance(folder, Folder):
            self.cache.take_out(folder)

    def corrupt(self, path: str, offset: int, mask: int = 0xFF) -> None:
        """Bit rot: flip bits of one byte, in the cache and on the disk."""
        inode = self.inode(path)
        inode.data[offset] ^= mask
        if offset < len(inode.durable):
            inode.durable[offset] ^= mask

    def paths(self) -> list[str]:
        """All files, sorted."""
        return sorted(self.files())

    def files(self, *, durable: bool = False) -> dict[str, Inode]:
        """All files by their paths; or those whose names would outlast a loss of power for certain."""
        found: dict[str, Inode] = {}

        def walk(folder: Folder, prefix: str) -> None:
            for name, node in (folder.durable if durable else folder.entries).items():
                if isinstance(node, Folder):
                    walk(node, f"{prefix}{name}/")
                else:
                    found[prefix + name] = node

        walk(self.cache.root, "/")
        return found

    def content(self, path: str) -> bytes:
        return bytes(self.inode(path).data)

    def inode(self, path: str) -> Inode:
        node = self.find(path)
        if not isinstance(node, Inode):
            raise FileNotFoundError(ENOENT, "no such file", path)
        return node

    def find(self, path: str) -> Folder | Inode | None:
        node: Folder | Inode = self.cache.root
        for name in path.split("/"):
            if name:
                if not isinstance(node, Folder) or name not in node.entries:
                    return None
                node = node.entries[name]
        return node

    def check(self, path: str, *, writing: bool = False) -> None:
        """Raise the error of a fault, if there is one."""
        for folder in self.failing:
            if path.startswith(folder):
                raise OSError(EIO, "input/output error", path)
        if writing and self.full:
            raise OSError(ENOSPC, "no space left on device", path)


class SimFile:
    """An open file."""

    __slots__ = ("_disk", "_path", "_process", "closed", "inode")

    def __init__(self, disk: SimDisk, process: Process, path: str, inode: Inode) -> None:
        self._disk = disk
        self._process = process
        self._path = path
        self.inode = inode
        self.closed = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        return len(self.inode.data)

    @property
    def synced(self) -> int:
        return self.inode.synced_bytes

    def read(self, offset: int, length: int) -> bytes:
        self._require_open()
        return self.peek(offset, length)

    def peek(self, offset: int, length: int) -> bytes:
        """Read for the network, which keeps a queued file open."""
        if self._disk.failing:
            self._disk.check(self._path)
        return bytes(self.inode.data[offset : offset + max(0, length)])

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        disk = self._disk
        self._require_open()
        data = b"".join(buffers)
        if disk.full:
            self._write_what_fits(offset, data)
        disk.check(self._path, writing=True)
        now_us = disk.scheduler.now_us
        self._process.burn(lambda: self.inode.write(offset, data[: disk.rng.randint(0, len(data))], now_us))
        if not data:
            return
        self.inode.write(offset, data, now_us)
        self.inode.write_back(now_us)

    def _write_what_fits(self, offset: int, data: bytes) -> None:
        """A nearly full disk takes a part of a write, and refuses the rest."""
        disk = self._disk
        disk.check(self._path)
        part = data[: disk.rng.randint(0, len(data) // 2)]
        if part:
            self._process.burn()
            self.inode.write(offset, part, disk.scheduler.now_us)

    def truncate(self, size: int) -> None:
        disk = self._disk
        self._require_open()
        disk.check(self._path, writing=True)
        self._process.burn()
        disk.cache.truncate(self.inode, size, disk.scheduler.now_us)
        disk.changed(self._path)

    def close(self) -> None:
        """Nothing is lost by closing."""
        self.closed = True

    def _require_open(self) -> None:
        if self.closed:
            raise OSError(EBADF, "the file is closed", self._path)


class SimDiskView:
    """`ports.Disk` of one process."""

    def __init__(self, disk: SimDisk, process: Process) -> None:
        self._disk = disk
        self._process = process
        self._replacements: dict[str, int] = {}
        """How many have asked to replace the file at a path."""

    # -- files

    def open(self, path: str, *, create: bool = True) -> SimFile:
        disk = self._disk
        disk.check(path)
        node = disk.find(path)
        if isinstance(node, Folder):
            raise IsADirectoryError(EISDIR, "is a folder", path)
        if node is None:
            if not create:
                raise FileNotFoundError(ENOENT, "no such file", path)
            disk.check(path, writing=True)
            folder, name = self._place(path)
            self._process.burn()
            node = Inode()
            disk.cache.change_names(disk.scheduler.now_us, (folder, name, node))
            disk.changed(name)
        return SimFile(disk, self._process, path, node)

    def read_file(self, path: str) -> bytes:
        self._disk.check(path)
        return self._disk.content(path)

    def write_file(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        """A new file takes the name of the old one. Without a sync a loss of power may leave it empty."""
        self._next_replacement(path)
        self._write_file(path, data, sync=sync)

    def _write_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        disk = self._disk
        disk.check(path, writing=True)
        folder, name = self._place(path)
        self._process.burn()
        inode = Inode(bytes(data))
        inode.synced_bytes = len(data)
        if not sync:
            inode.whole_since_us = disk.scheduler.now_us
        disk.cache.change_names(disk.scheduler.now_us, (folder, name, inode))
        if sync and not disk.lying:
            disk.cache.commit_folder(folder)

    def make_durable(self, path: str) -> None:
        disk = self._disk
        disk.check(path)
        inode = disk.inode(path)
        folder = inode.parent
        self._process.burn()
        if not disk.lying:
            inode.whole_since_us = None
        if folder is not None and not disk.lying:
            disk.cache.commit_folder(folder)

    def write_file_later(self, path: str, data: Buffer, done: Callable[[OSError | None], None]) -> None:
        """It takes as long as the slowest sync: not drawn, so that a seed has the same story with and without it."""
        turn = self._next_replacement(path)

        def write() -> None:
            if turn == self._replacements[path]:
                self._write_file(path, data, sync=False)

        def work() -> None:
            done(_failure_of(write))

        self._disk.scheduler.after(self._disk.sync_us[1], work, self._process)

    def _next_replacement(self, path: str) -> int:
        """One more replaces this file, whenever that will be: what was asked for before is not to replace it then."""
        self._replacements[path] = turn = self._replacements.get(path, 0) + 1
        return turn

    # -- names

    def exists(self, path: str) -> bool:
        self._disk.check(path)
        return self._disk.find(path) is not None

    def list(self, path: str) -> list[str]:
        self._disk.check(path)
        node = self._disk.find(path)
        if not isinstance(node, Folder):
            raise FileNotFoundError(ENOENT, "no such folder", path)
        return sorted(node.entries)

    def is_directory(self, path: str) -> bool:
        return isinstance(self._disk.find(path), Folder)

    def crowded(self) -> bool:
        return False

    def make_directory(self, path: str) -> bool:
        disk = self._disk
        disk.check(path, writing=True)
        folder = disk.cache.root
        made = False
        for name in path.split("/"):
            if not name:
                continue
            node = folder.entries.get(name)
            made = node is None
            if node is None:
                self._process.burn()
                node = Folder(folder, name)
                disk.cache.change_names(disk.scheduler.now_us, (folder, name, node))
            if not isinstance(node, Folder):
                raise FileExistsError(EEXIST, "is a file", path)
            folder = node
        return made

    def remove(self, path: str) -> None:
        disk = self._disk
        disk.check(path)
        node = disk.find(path)
        if node is not None:
            self._remove(node)

    def _remove(self, node: Folder | Inode) -> None:
        """A folder is removed name by name; a crash may leave half of it."""
        if isinstance(node, Folder):
            for _, inner in sorted(node.entries.items()):
                self._remove(inner)
        if node.parent is not None:
            self._process.burn()
            name = node.name
            self._disk.cache.change_names(self._disk.scheduler.now_us, (node.parent, name, None))
            self._disk.changed(name)

    def rename(self, source: str, target: str) -> None:
        disk = self._disk
        disk.check(source)
        node = disk.find(source)
        if node is None or node.parent is None:
            raise FileNotFoundError(ENOENT, "no such file or folder", source)
        folder, name = self._place(target)
        if source.rstrip("/") == target.rstrip("/"):
            return
        self._process.burn()
        disk.cache.change_names(disk.scheduler.now_us, (node.parent, node.name, None), (folder, name, node))
        disk.changed(target)

    def _place(self, path: str) -> tuple[Folder, str]:
        """The folder of a name, which must be there, and the name in it."""
        parent, _, name = path.rstrip("/").rpartition("/")
        folder = self._disk.find(parent)
        if not isinstance(folder, Folder):
            raise FileNotFoundError(ENOENT, "no such folder", parent)
        return folder, name

    # -- durability, and work off the loop

    @property
    def large_write_bytes(self) -> int:
        return self._disk.large_write_bytes

    def write_later(
        self, file: File, offset: int, buffers: Sequence[Buffer], done: Callable[[OSError | None], None]
    ) -> LateWrite:
        """It takes from no time to the longest that the kernel makes a writer wait."""
        disk = self._disk
        write = LateWrite(_of(file), offset, buffers)

        def work() -> None:
            done(_failure_of(write.finish))

        delay_us = disk.rng.randint(0, 2_000) if disk.rng.random() < 0.9 else disk.rng.randint(0, 200_000)
        disk.scheduler.after(delay_us, work, self._process)
        return write

    def sync(self, files: Sequence[File], done: Callable[[OSError | None], None]) -> None:
        """A sync that has begun completes, even if the process dies."""
        disk = self._disk
        self._process.burn()
        low_us, high_us = disk.sync_us
        begun = [(_of(file), _of(file).inode.mark, file.size) for file in files]
        generation = disk.generation

        def finish() -> None:
            if disk.generation != generation:
                return
            failure: OSError | None = None
            for file, mark, size in begun:
                try:
                    disk.check(file.path)
                except OSError as error:
                    failure = failure or error
                    continue
                _end_sync(disk, file.inode, mark, size)
            disk.scheduler.dispatch(self._process, lambda: done(failure))

        disk.scheduler.after(disk.rng.randint(low_us, high_us), finish)

    def sync_now(self, file: File) -> None:
        of_disk = _of(file)
        self._disk.check(file.path)
        self._process.burn()
        _end_sync(self._disk, of_disk.inode, of_disk.inode.mark, file.size)

    def run(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        def work() -> None:
            try:
                result: T | BaseException = job()
            except Exception as failure:
                result = failure
            done(result)

        disk = self._disk
        disk.scheduler.after(disk.rng.randint(100, 2_000), work, self._process)

    def run_now(self, jobs: Sequence[Callable[[], None]]) -> None:
        for job in jobs:
            job()


def _failure_of(write: Callable[[], None]) -> OSError | None:
    try:
        write()
    except OSError as failure:
        return failure
    return None


def _of(file: File) -> SimFile:
    if not isinstance(file, SimFile):
        raise TypeError(f"{file!r} is no file of this disk")
    return file


def _end_sync(disk: SimDisk, inode: Inode, mark: int, size: int) -> None:
    """A sync that began at `mark`, when the file had `size` bytes, has ended."""
    if not disk.lying:
        inode.write_through(mark)
        disk.cache.commit_file(inode)
    inode.vouch(mark, size)
