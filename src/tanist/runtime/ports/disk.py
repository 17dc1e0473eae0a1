"""The real `Disk` port: names in a real file system, files by descriptor, syncs and jobs in threads.

Reads and small writes go to the page cache from the loop's own thread, which is fast and does not block (a hop to a
thread and back costs more than the write). The call that blocks, `fdatasync`, runs in threads (`group_sync.py`). So may
the replacement of a small file, whose rename waits for the file system; and large writes, which wait for memory and,
when much has not reached the disk yet, for the disk.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from tanist.ports import Buffer, File
from tanist.runtime.ports.bulk import LARGE_WRITE_BYTES, RealLateWrite
from tanist.runtime.ports.descriptors import is_crowded, opening
from tanist.runtime.ports.files import DiskFile, sync_folder, sync_path, write_whole
from tanist.runtime.ports.group_sync import GroupSync
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.synced_lengths import SyncLedger, key_of
from tanist.runtime.ports.workers import Workers

if TYPE_CHECKING:
    import builtins

T = TypeVar("T")

JOB_THREADS = 2
WRITE_THREADS = 2
"""Two, so that a directory on another disk does not wait for a slow one."""
RUN_NOW_THREADS = 4
"""They wait for the journal of the file system, which one commit serves: more bring nothing (two cores, ext4)."""


class _Turns:
    """Those who replace one small file. The lock is held while it is replaced."""

    __slots__ = ("latest", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.latest = 0
        """The turn of who was the last to ask: changed on the loop only. Others are not to replace what it leaves."""


class RealDisk:
    """The `Disk` port on the file system of the machine."""

    large_write_bytes = LARGE_WRITE_BYTES

    def __init__(self, loop: Loop, ledger_path: str | None = None, *, job_threads: int = JOB_THREADS) -> None:
        self._ledger = SyncLedger(ledger_path) if ledger_path is not None else None
        self._group_sync = GroupSync(loop)
        self._jobs = Workers(loop, "job", job_threads)
        self._writes = Workers(loop, "write", WRITE_THREADS)
        self._files: WeakSet[DiskFile] = WeakSet()
        self._files_lock = threading.Lock()
        """Jobs open files."""
        self._turns: dict[str, _Turns] = {}
        """Of each path that was ever given to `write_file_later`: a few for each log directory."""

    # -- files

    def open(self, path: str, *, create: bool = True) -> DiskFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        fd = opening(lambda: os.open(path, flags, 0o644))
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            os.close(fd)
            raise IsADirectoryError(errno.EISDIR, "is a folder", path)
        file = DiskFile(self._ledger, path, fd, key_of(status), status.st_size)
        with self._files_lock:
            self._files.add(file)
        return file

    def read_file(self, path: str) -> bytes:
        with opening(lambda: open(path, "rb", buffering=0)) as file:
            return file.read()

    def write_file(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        turns = self._turns.get(path)
        if turns is None:
            self._write_file(path, data, sync=sync)
            return
        turns.latest += 1
        with turns.lock:
            self._write_file(path, data, sync=sync)

    def make_durable(self, path: str) -> None:
        sync_path(path)
        if self._ledger is not None:
            self._ledger.replaced(key_of(os.stat(path)), 0)
        sync_folder(os.path.dirname(path))

    def write_file_later(self, path: str, data: Buffer, done: Callable[[OSError | None], None]) -> None:
        turns = self._turns.setdefault(path, _Turns())
        turns.latest += 1
        turn = turns.latest

        def write() -> None:
            with turns.lock:
                if turn == turns.latest:
                    self._write_file(path, data, sync=False)

        self.run(write, _reporting(done))

    def _write_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        # A job may write the same file meanwhile: neither may take the other's away.
        in_job = threading.current_thread() is not threading.main_thread()
        passing = f"{path}.{threading.get_native_id()}.tmp" if in_job else f"{path}.tmp"
        try:
            status = write_whole(passing, data, sync=sync)
            replaces = self._forget(path)
            if self._ledger is not None:
                # Also without a sync: it is the old or the new, or empty (`replaced`), and nobody may cut it half-way.
                key = key_of(status)
                self._ledger.adopt(key, len(data))
                self._ledger.replaced(key, 0 if sync or not replaces else time.time_ns() // 1_000_000)
            os.replace(passing, path)
        except OSError:
            self.remove(passing)
            raise
        if sync:
            sync_folder(os.path.dirname(path))

    # -- names

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list(self, path: str) -> builtins.list[str]:
        return sorted(opening(lambda: os.listdir(path)))

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def crowded(self) -> bool:
        return is_crowded(len(self._files))

    def make_directory(self, path: str) -> bool:
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
            return False
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)
        return True

    def remove(self, path: str) -> None:
        try:
            with opening(lambda: os.scandir(path)) as entries:
                inside = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except NotADirectoryError:
            self._forget(path)
            os.unlink(path)
            return
        except FileNotFoundError:
            return
        for name, folder in inside:
            if folder:
                self.remove(name)
            else:
                self._forget(name)
                os.unlink(name)
        os.rmdir(path)

    def rename(self, source: str, target: str) -> None:
        if self._ledger is not None and os.path.isfile(target):
            self._forget(target)
        os.replace(source, target)

    # -- durability and work off the loop

    def write_later(
        self, file: File, offset: int, buffers: Sequence[Buffer], done: Callable[[OSError | None], None]
    ) -> RealLateWrite:
        write = RealLateWrite(file, offset, buffers)
        self._writes.submit(write.finish, _reporting(done))
        return write

    def sync(self, files: Sequence[File], done: Callable[[OSError | None], None]) -> None:
        self._group_sync.sync([_of_this_disk(file) for file in files], done)

    def sync_now(self, file: File) -> None:
        of_disk = _of_this_disk(file)
        if of_disk.failure is not None:
            raise of_disk.failure
        of_disk.sync_begins()
        try:
            of_disk.sync_blocking()
        except OSError as error:
            of_disk.failure = error
            raise
        of_disk.sync_succeeded()

    def run(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        self._jobs.submit(job, done)

    def run_now(self, jobs: Sequence[Callable[[], None]]) -> None:
        with ThreadPoolExecutor(RUN_NOW_THREADS, "run-now") as threads:
            results = [threads.submit(job) for job in jobs]
        for result in results:
            result.result()

    # -- for the rest of runtime

    @property
    def open_files(self) -> Sequence[DiskFile]:
        """Those that somebody still holds."""
        with self._files_lock:
            return tuple(self._files)

    def close(self) -> None:
        """Wait for the threads and close the ledger. Files are their owners' to close."""
        self._group_sync.close()
        self._writes.close()
        self._jobs.close()
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    # -- inner

    def _forget(self, path: str) -> bool:
        """The file at `path` is about to go: free its row, for its inode will be used again. Whether there is one."""
        if self._ledger is None:
            return False
        try:
            self._ledger.drop(key_of(os.lstat(path)))
        except FileNotFoundError:
            return False
        return True


def _reporting(done: Callable[[OSError | None], None]) -> Callable[[BaseException | None], None]:
    """Report what came of a thread's write; an exception that is no failure of the disk is raised."""

    def written(result: BaseException | None) -> None:
        if result is not None and not isinstance(result, OSError):
            raise result
        done(result)

    return written


def _of_this_disk(file: File) -> DiskFile:
    if not isinstance(file, DiskFile):
        raise TypeError(f"cannot sync a {type(file).__name__}: it is not a file of the real disk")
    return file
