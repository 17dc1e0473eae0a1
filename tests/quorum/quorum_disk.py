"""A disk in memory that loses its page cache with the power: what was not synced survives, is lost, or torn, at random.

Names of files that were never synced may vanish too. Renames, removals and `write_file(sync=True)` are durable at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from tanist.ports import NEVER_LARGE, Buffer, File, LateWrite

T = TypeVar("T")


class _Inode:
    def __init__(self, data: bytes = b"", *, named: bool = False) -> None:
        self.data = bytearray(data)
        self.durable = data if named else b""
        self.named = named
        self.changes: list[tuple[int, bytes] | int] = []
        self.synced = len(data) if named else 0

    def sync(self) -> None:
        self.durable, self.changes, self.named, self.synced = bytes(self.data), [], True, len(self.data)

    def lose_power(self, rng: random.Random) -> bool:
        if not self.named and rng.random() < 0.5:
            return False
        kept = bytearray(self.durable)
        for change in self.changes:
            fate = rng.random()
            if isinstance(change, int):
                if fate < 0.5:
                    del kept[change:]
                continue
            offset, data = change
            if fate < 0.4:
                continue
            if fate < 0.6:
                data = data[: rng.randrange(len(data) + 1)]
            kept.extend(bytes(max(0, offset - len(kept))))
            kept[offset : offset + len(data)] = data
        self.data = kept
        self.sync()
        return True


class LossyFile:
    def __init__(self, path: str, inode: _Inode) -> None:
        self.path = path
        self.inode = inode

    @property
    def size(self) -> int:
        return len(self.inode.data)

    @property
    def synced(self) -> int:
        return self.inode.synced

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self.inode.data[offset : offset + length])

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        data = b"".join(bytes(buffer) for buffer in buffers)
        inode = self.inode
        inode.data.extend(bytes(max(0, offset - len(inode.data))))
        inode.data[offset : offset + len(data)] = data
        inode.changes.append((offset, data))
        inode.synced = min(inode.synced, offset)

    def truncate(self, size: int) -> None:
        inode = self.inode
        inode.data.extend(bytes(max(0, size - len(inode.data))))
        del inode.data[size:]
        inode.changes.append(size)
        inode.synced = min(inode.synced, size)

    def close(self) -> None:
        pass


class LossyDisk:
    """`ports.Disk`. It outlives the processes that use it."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.files: dict[str, _Inode] = {}
        self._folders: set[str] = set()

    def lose_power(self) -> None:
        for path, inode in sorted(self.files.items()):
            if not inode.lose_power(self._rng):
                del self.files[path]

    # -- ports.Disk

    def open(self, path: str, *, create: bool = True) -> LossyFile:
        if path not in self.files:
            if not create:
                raise FileNotFoundError(path)
            self.files[path] = _Inode()
        return LossyFile(path, self.files[path])

    def exists(self, path: str) -> bool:
        return path in self.files or path in self._folders

    def list(self, path: str) -> list[str]:
        if path not in self._folders:
            raise FileNotFoundError(path)
        names = {
            name[len(path) + 1 :].split("/")[0] for name in (*self.files, *self._folders) if name.startswith(f"{path}/")
        }
        return sorted(names)

    def is_directory(self, path: str) -> bool:
        return path in self._folders

    def crowded(self) -> bool:
        return False

    def make_directory(self, path: str) -> bool:
        made = path not in self._folders
        parts = path.split("/")
        self._folders |= {"/".join(parts[:count]) for count in range(2, len(parts) + 1)}
        return made

    def remove(self, path: str) -> None:
        for name in [name for name in self.files if name == path or name.startswith(f"{path}/")]:
            del self.files[name]
        self._folders = {name for name in self._folders if name != path and not name.startswith(f"{path}/")}

    def rename(self, source: str, target: str) -> None:
        self.files[target] = self.files.pop(source)

    def read_file(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return bytes(self.files[path].data)

    def write_file(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        before = self.files.get(path)
        after = _Inode(bytes(data), named=sync)
        if not sync and before is not None and before.named:
            # Replaced by a rename that may not have reached the disk: one content or the other, never a mixture.
            after.named = True
            after.durable = bytes(data) if self._rng.random() < 0.5 else before.durable
        elif not sync:
            after.changes = [(0, bytes(data))]
        self.files[path] = after

    def make_durable(self, path: str) -> None:
        if path not in self.files:
            raise FileNotFoundError(path)
        self.files[path].sync()

    def write_file_later(self, path: str, data: Buffer, done: Callable[[OSError | None], None]) -> None:
        raise NotImplementedError("the quorum's files are written at once")

    large_write_bytes = NEVER_LARGE

    def write_later(
        self, file: File, offset: int, buffers: Sequence[Buffer], done: Callable[[OSError | None], None]
    ) -> LateWrite:
        raise NotImplementedError("the quorum's log is written at once")

    def sync(self, files: Sequence[File], done: Callable[[OSError | None], None]) -> None:
        raise NotImplementedError("these tests say themselves when a sync ends")

    def sync_now(self, file: File) -> None:
        if not isinstance(file, LossyFile):
            raise TypeError(f"{file} is of another disk")
        file.inode.sync()

    def run(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        done(job())

    def run_now(self, jobs: Sequence[Callable[[], None]]) -> None:
        for job in jobs:
            job()
