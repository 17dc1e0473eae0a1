"""The `.txnindex` file beside a segment, in Kafka's format: the transactions that were aborted in it.

An entry has 34 bytes: version 0: i16, producer id, first, last and last stable offset: i64. There is a file only where
there is an entry. One that does not ascend raises `CorruptIndexError`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct
from typing import ClassVar, NamedTuple

from tanist.log.indexes import BLOCK_ENTRIES, CorruptIndexError
from tanist.ports import Disk, File


class AbortedTransaction(NamedTuple):
    """A transaction that an ABORT marker at `last_offset` ended; consumers skip its records."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """`.txnindex`: the transactions that were aborted in a segment, by the offset of their marker. Made when needed."""

    __slots__ = ("_disk", "_exists", "_file", "base_offset", "path")

    _entry: ClassVar[Struct] = Struct(">hqqqq")
    _version: ClassVar[int] = 0

    def __init__(self, disk: Disk, path: str, base_offset: int, *, exists: bool) -> None:
        self._disk = disk
        self._file: File | None = None
        self._exists = exists
        self.path = path
        self.base_offset = base_offset

    @property
    def file(self) -> File | None:
        """The open file for a sync, None when no transaction was aborted here."""
        return self._open() if self._exists else None

    def open(self) -> None:
        """Make sure that there is a file."""
        self._open()

    def _open(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path)
            self._exists = True
        return self._file

    def append(self, transaction: AbortedTransaction) -> None:
        file = self._open()
        end = file.size // self._entry.size * self._entry.size
        file.write(end, (self._entry.pack(self._version, *transaction),))

    @property
    def exists(self) -> bool:
        return self._exists

    def transactions(self, from_offset: int = 0) -> Iterator[AbortedTransaction]:
        """Those whose marker is at `from_offset` or later, in order, read a block at a time.

        A block's damage ends the walk with `CorruptIndexError`.
        """
        file = self.file
        if file is None:
            return
        size = self._entry.size
        previous = self.base_offset - 1
        for start in range(self._first_from(from_offset, file) * size, file.size // size * size, size * BLOCK_ENTRIES):
            data = file.read(start, size * BLOCK_ENTRIES)
            for version, *values in self._entry.iter_unpack(data[: len(data) // size * size]):
                transaction = AbortedTransaction(*values)
                if version != self._version or transaction.last_offset <= previous:
                    raise CorruptIndexError(f"{self.path}: {transaction}, version {version}, can't stand here")
                previous = transaction.last_offset
                yield transaction

    def _first_from(self, offset: int, file: File) -> int:
        """Number of the first entry whose marker is at `offset` or later."""
        size = self._entry.size

        def marker(number: int) -> int:
            last_offset: int = self._entry.unpack(file.read(number * size, size))[3]
            return last_offset

        return bisect_left(range(file.size // size), offset, key=marker)

    def truncate_to(self, offset: int) -> None:
        """Forget the transactions whose marker is at `offset` or later."""
        file = self.file
        if file is None:
            return
        kept = 0
        for transaction in self.transactions():
            if transaction.last_offset >= offset:
                break
            kept += 1
        if file.size > kept * self._entry.size:
            file.truncate(kept * self._entry.size)

    def reset(self) -> None:
        file = self.file
        if file is not None:
            file.truncate(0)

    def release(self) -> File | None:
        file, self._file = self._file, None
        return file

    def park(self) -> None:
        """Close the file until the next use."""
        file = self.release()
        if file is not None:
            file.close()
