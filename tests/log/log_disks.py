"""A `Disk` port for the tests of this package, in memory: it counts, fails on demand, and has a limit of open files."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Any

from tanist.ports import NEVER_LARGE, Buffer, File, LateWrite


class MemoryFile:
    def __init__(self, disk: MemoryDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
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
        return self.inode.synced

    def read(self, offset: int, length: int) -> bytes:
        self._use()
        self._disk.reads += 1
        self._disk.read_bytes_max = max(self._disk.read_bytes_max, length)
        return bytes(self.inode.data[offset : offset + length])

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        self._use()
        self._disk.writes += 1
        self._disk.check()
        self.inode.synced = min(self.inode.synced, offset)
        for buffer in buffers:
            self.inode.data[offset : offset + len(buffer)] = buffer
            offset += len(buffer)

    def truncate(self, size: int) -> None:
        self._use()
        self.inode.synced = min(self.inode.synced, size)
        if size < len(self.inode.data):
            del self.inode.data[size:]
        else:
            self.inode.data.extend(bytes(size - len(self.inode.data)))

    def close(self) -> None:
        self.closed = True
        self._disk.open_files -= 1

    def _use(self) -> None:
        if self.closed:
            raise OSError(9, f"{self._path} is closed")


class _Inode:
    def __init__(self, data: Buffer = b"") -> None:
        self.data = bytearray(data)
        self.synced = 0


class LateWrites:
    """`Disk.write_later`, whose writes a test makes by `end_writes`."""

    def __init__(self) -> None:
        self.late_writes: list[tuple[LateWrite, Callable[[OSError | None], None]]] = []
        """What was given, and has not been reported."""

    def write_later(
        self, file: File, offset: int, buffers: Sequence[Buffer], done: Callable[[OSError | None], None]
    ) -> LateWrite:
        write = LateWrite(file, offset, buffers)
        self.late_writes.append((write, done))
        return write

    def end_writes(self) -> None:
        late, self.late_writes = self.late_writes, []
        for write, done in late:
            failure: OSError | None = None
            try:
                write.finish()
            except OSError as error:
                failure = error
            done(failure)


class MemoryDisk(LateWrites):
    """Files in a dict. `fail` makes the next writes raise; `reads` and `writes` count calls. With `descriptors` files
    open the next one raises EMFILE; with `crowded_at` it says that it is crowded.
    """

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, _Inode] = {}
        self.folders: set[str] = set()
        self.later: dict[str, tuple[bytes, Callable[[OSError | None], None]]] = {}
        """What `write_file_later` was given, and has not been written."""
        self.overtaken: set[str] = set()
        self.large_write_bytes = NEVER_LARGE
        self.fail: OSError | None = None
        self.reads = 0
        self.writes = 0
        self.read_bytes_max = 0
        self.open_files = 0
        self.most_open_files = 0
        self.descriptors = self.crowded_at = 10**9
        self.journal: list[str] = []

    def check(self) -> None:
        if self.fail is not None:
            raise self.fail

    def content(self, path: str) -> bytes:
        return bytes(self.files[path].data)

    def copy(self) -> MemoryDisk:
        """The same files, on another disk: what a second machine would find."""
        twin = MemoryDisk()
        twin.folders = set(self.folders)
        twin.files = {path: _Inode(inode.data) for path, inode in self.files.items()}
        return twin

    def need_descriptor(self) -> None:
        """One more open file, if only for a moment."""
        if self.open_files >= self.descriptors:
            raise OSError(errno.EMFILE, "Too many open files")
        self.most_open_files = max(self.most_open_files, self.open_files + 1)

    def open(self, path: str, *, create: bool = True) -> MemoryFile:
        self.need_descriptor()
        if path not in self.files:
            if not create:
                raise FileNotFoundError(path)
            self.check()
            self.files[path] = _Inode()
        self.open_files += 1
        return MemoryFile(self, path, self.files[path])

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.folders

    def list(self, path: str) -> list[str]:
        self.need_descriptor()
        if path not in self.folders:
            raise FileNotFoundError(path)
        inside = [each for each in (*self.files, *self.folders) if each.startswith(path + "/")]
        return sorted({each[len(path) + 1 :].split("/")[0] for each in inside})

    def is_directory(self, path: str) -> bool:
        return path in self.folders

    def crowded(self) -> bool:
        return self.open_files >= self.crowded_at

    def make_directory(self, path: str) -> bool:
        made = path not in self.folders
        while path:
            self.folders.add(path)
            path = path.rpartition("/")[0]
        return made

    def remove(self, path: str) -> None:
        self.need_descriptor()
        self.journal.append(f"remove {path}")
        self.files.pop(path, None)
        if path in self.folders:
            for each in [each for each in self.files if each.startswith(path + "/")]:
                del self.files[each]
            self.folders = {each for each in self.folders if each != path and not each.startswith(path + "/")}

    def rename(self, source: str, target: str) -> None:
        if source in self.files:
            self.files[target] = self.files.pop(source)
            return
        if source not in self.folders:
            raise FileNotFoundError(source)
        for each in [each for each in self.files if each.startswith(source + "/")]:
            self.files[target + each[len(source) :]] = self.files.pop(each)
        self.folders.discard(source)
        self.folders.add(target)

    def read_file(self, path: str) -> bytes:
        self.need_descriptor()
        if path not in self.files:
            raise FileNotFoundError(path)
        return bytes(self.files[path].data)

    def write_file(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        self.need_descriptor()
        self.check()
        self.journal.append(f"{'sync' if sync else 'write'} {path}")
        self.files[path] = _Inode(data)
        self.overtaken |= self.later.keys() & {path}

    def make_durable(self, path: str) -> None:
        self.need_descriptor()
        if path not in self.files:
            raise FileNotFoundError(path)
        self.journal.append(f"sync {path}")

    def write_file_later(self, path: str, data: Buffer, done: Callable[[OSError | None], None]) -> None:
        """A test carries it out by `write_late`."""
        assert path not in self.later
        self.later[path] = (bytes(data), done)

    def write_late(self) -> None:
        later, overtaken = self.later, self.overtaken
        self.later, self.overtaken = {}, set()
        for path, (data, done) in later.items():
            failure: OSError | None = None
            try:
                if path not in overtaken:
                    self.write_file(path, data, sync=False)
            except OSError as error:
                failure = error
            done(failure)

    def sync(self, files: Sequence[File], done: Callable[[OSError | None], None]) -> None:
        for file in files:
            self.sync_now(file)
        done(None)

    def sync_now(self, file: File) -> None:
        assert isinstance(file, MemoryFile)
        file.inode.synced = file.size

    def run(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        done(job())

    def run_now(self, jobs: Sequence[Callable[[], None]]) -> None:
        for job in jobs:
            job()
