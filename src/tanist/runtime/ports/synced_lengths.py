"""How much of each file is known to be on the disk itself: a small table that outlives a SIGKILL of its process.

A killed process leaves the page cache to the system, so nothing that it wrote is lost; a loss of power loses what
was not synced. To make the second out of the first (`tanist crash ID --lose page-cache`), somebody outside must know
how much of each file was synced. A node therefore keeps, in a memory-mapped file of its data folder, one row per
file: device, inode, synced bytes. The mapping is shared, so a store survives the process at once and costs no system
call.

It is never on the hot path: an append leaves the synced length alone. It changes when a sync completes, and when a
file is cut or overwritten below it. Rows are found by inode, so renaming a file or its folder changes nothing.

A small file that took another one's name without a sync counts as synced, for it is the one or the other. But for a
while it may be empty (KAFKA-16541), so its row has the time at which it was replaced.

Layout: a 16-byte head (magic, then rows in use or free), then rows of four unsigned 64-bit integers in native order:
device, inode (0: the row is free), synced bytes, and when it was replaced without a sync, in ms since 1970 (0: it was
not). A reader scans all rows.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
from collections.abc import Iterator
from pathlib import Path

MAGIC = b"tanistS1"
LEDGER_NAME = ".tanist-synced"
_HEAD_BYTES = 16
_ROW_BYTES = 32
_ROWS_AT_FIRST = 512

FileKey = tuple[int, int]
"""Device and inode."""


def key_of(status: os.stat_result) -> FileKey:
    return status.st_dev, status.st_ino


class SyncLedger:
    """The table of one node. One writer, the node's process; readers use `read_ledger`."""

    def __init__(self, path: str) -> None:
        self.path = path
        fresh = not os.path.exists(path)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        size = os.fstat(self._fd).st_size
        self._rows: dict[FileKey, int] = {}
        self._free: list[int] = []
        self._lock = threading.Lock()
        """Logs are opened and folders removed off the loop."""
        try:
            self._map_rows(max(_ROWS_AT_FIRST, (size - _HEAD_BYTES) // _ROW_BYTES))
            if size and self._map[:8] != MAGIC:
                raise OSError(f"{path} is not a ledger of synced lengths: remove it if nothing else needs it")
        except BaseException:
            os.close(self._fd)
            raise
        self._map[:8] = MAGIC
        cells = self._cells
        for row in range(self._capacity - 1, -1, -1):
            if cells[row * 4 + 1]:
                self._rows[cells[row * 4], cells[row * 4 + 1]] = row
            else:
                self._free.append(row)
        if fresh:
            self._adopt_existing(os.path.dirname(path) or ".")

    def synced(self, key: FileKey) -> int:
        """Synced bytes of the file; 0 if it is unknown."""
        with self._lock:
            row = self._rows.get(key)
            return 0 if row is None else self._cells[row * 4 + 2]

    def record(self, key: FileKey, synced_bytes: int) -> None:
        """Note a new length, for a file that `adopt` has seen and `drop` has not."""
        with self._lock:
            row = self._rows.get(key)
            if row is not None:
                self._cells[row * 4 + 2] = synced_bytes

    def adopt(self, key: FileKey, synced_bytes: int) -> None:
        """Note a file, whatever an earlier file of the same inode had."""
        with self._lock:
            row = self._rows.get(key)
            if row is None:
                if not self._free:
                    self._grow()
                row = self._free.pop()
                self._rows[key] = row
                self._cells[row * 4 + 3] = 0
            cells, at = self._cells, row * 4
            cells[at] = key[0]
            cells[at + 2] = synced_bytes
            cells[at + 1] = key[1]  # last: it makes the row valid

    def replaced(self, key: FileKey, wall_ms: int) -> None:
        """A file that `adopt` has seen takes another's name now, without a sync; 0: its content is durable."""
        with self._lock:
            row = self._rows.get(key)
            if row is not None:
                self._cells[row * 4 + 3] = wall_ms

    def drop(self, key: FileKey) -> None:
        """The file is removed."""
        with self._lock:
            row = self._rows.pop(key, None)
            if row is not None:
                self._cells[row * 4 + 1] = 0
                self._free.append(row)

    def close(self) -> None:
        self._cells.release()
        self._map.close()
        os.close(self._fd)

    def _allocate(self, rows: int) -> None:
        """Reserve space for rows. In a sparse file, a full disk would end the process by SIGBUS at the first store."""
        size = _HEAD_BYTES + rows * _ROW_BYTES
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(self._fd, 0, size)
                return
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise OSError(error.errno, error.strerror, self.path) from None
        at = os.fstat(self._fd).st_size
        if at < size:
            os.pwrite(self._fd, bytes(size - at), at)

    def _map_rows(self, rows: int) -> None:
        self._allocate(rows)
        self._map = mmap.mmap(self._fd, _HEAD_BYTES + rows * _ROW_BYTES)
        self._cells = memoryview(self._map)[_HEAD_BYTES:].cast("Q")
        self._capacity = rows

    def _grow(self) -> None:
        rows = self._capacity
        self._allocate(rows * 2)  # or raise, with the table as it is
        self._cells.release()
        self._map.close()
        self._map_rows(rows * 2)
        self._free.extend(range(rows * 2 - 1, rows - 1, -1))

    def _adopt_existing(self, folder: str) -> None:
        """A folder that had files before it had a ledger: another program's, or restored. Take them as they are."""
        for parent, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)
                if path != self.path and not os.path.islink(path):
                    status = os.stat(path)
                    self.adopt(key_of(status), status.st_size)


def read_ledger(path: str | Path) -> dict[FileKey, int]:
    """The synced bytes of every file in a ledger, read from outside its process."""
    return {key: synced for key, synced, _ in _rows(path)}


def read_replaced(path: str | Path) -> dict[FileKey, int]:
    """When each file was replaced (ms since 1970), of those whose content was not synced since."""
    return {key: replaced_ms for key, _, replaced_ms in _rows(path) if replaced_ms}


def _rows(path: str | Path) -> Iterator[tuple[FileKey, int, int]]:
    data = Path(path).read_bytes()
    if data[:8] != MAGIC:
        raise ValueError(f"{path} is not a ledger of synced lengths")
    whole = (len(data) - _HEAD_BYTES) // _ROW_BYTES * _ROW_BYTES
    cells = memoryview(data)[_HEAD_BYTES : _HEAD_BYTES + whole].cast("Q")
    for at in range(0, len(cells), 4):
        if cells[at + 1]:
            yield (cells[at], cells[at + 1]), cells[at + 2], cells[at + 3]
