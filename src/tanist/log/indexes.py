"""The sorted index files beside a segment: `.index` and `.timeindex`, in Kafka's format.

* `.index`: 8 bytes an entry, (offset - base: i32, position: i32). The offset is the last one of the batch at the
  position.
* `.timeindex`: 12 bytes, (timestamp: i64, offset - base: i32): no record up to the offset is later than the
  timestamp.

Entries are found by bounded reads; a new one waits in memory until 4 KB are full or the segment rolls or closes. That
loses nothing: only the indexes of segments from the recovery point on can lack entries after a crash, and those are
rebuilt. `park` closes the file and keeps those entries; the next use opens it again. Kafka makes the index of an
active segment 10 MB long and cuts it later; such zeros at the end are read over, and never written.

An index is never trusted: an entry that does not ascend, or lies outside its segment, raises `CorruptIndexError`, and
the index is rebuilt.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from struct import Struct
from typing import ClassVar, NamedTuple

from tanist.ports import Disk, File

BLOCK_ENTRIES = 512
_WRITE_BEHIND_BYTES = 4096
_INT_MAX = 2**31 - 1
_UNKNOWN = -1
"""Entries in a file that has not been opened yet."""


class CorruptIndexError(Exception):
    """The file cannot be the index of its segment. The cure is to rebuild it from the segment."""


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class _SortedIndex:
    """Fixed-size entries with an ascending key: the base of both kinds."""

    __slots__ = (
        "_before",
        "_count",
        "_disk",
        "_file",
        "_tail",
        "base_offset",
        "changes",
        "entries_left",
        "max_entries",
        "path",
    )

    _entry: ClassVar[Struct]
    _key: ClassVar[int]
    """Which field of an entry is searched."""
    _offset: ClassVar[int]
    """Which field of an entry is the relative offset."""
    _spare: ClassVar[int] = 0
    """Entries kept free for the roll."""

    def __init__(self, disk: Disk, path: str, base_offset: int, max_bytes: int) -> None:
        self._disk = disk
        self._file: File | None = None
        self._count = _UNKNOWN
        self._tail = bytearray()
        self._before = b""
        """Content of the file that `reset` has left there, until other entries are written."""
        self.path = path
        self.base_offset = base_offset
        self.max_entries = max(1, max_bytes // self._entry.size)
        self.entries_left = self.max_entries - self._spare
        """How many more entries fit; right once the file has been opened."""
        self.changes = 0
        """Counts what makes entries wrong that were read before: cuts, and writing anew."""

    @property
    def entries(self) -> int:
        if self._count < 0:
            self._load()
        return self._count + len(self._tail) // self._entry.size

    @property
    def full(self) -> bool:
        if self._count < 0:
            self._load()
        return self.entries_left <= 0

    @property
    def file(self) -> File:
        """The open file, for a sync."""
        return self._load()

    def open(self) -> None:
        """Make sure that there is a file."""
        self._load()

    def _load(self) -> File:
        if self._file is None:
            file = self._disk.open(self.path)
            if self._count >= 0:
                self._file = file
                return file
            size = self._entry.size
            if file.size % size:
                file.close()
                raise CorruptIndexError(f"{self.path}: {file.size} bytes are no multiple of {size}")
            self._file = file
            self._count = self._used(file, file.size // size)
            self._recount()
            try:
                self._check()
            except CorruptIndexError:
                self._file = None
                self._count = _UNKNOWN
                file.close()
                raise
        return self._file

    def _used(self, file: File, slots: int) -> int:
        """How many entries come before the zeros of a preallocated file: all used ones precede all unused ones."""
        size = self._entry.size
        zero = bytes(size)
        if slots == 0 or file.read((slots - 1) * size, size) != zero:
            return slots
        return bisect_left(range(slots - 1), True, key=lambda slot: file.read(slot * size, size) == zero)

    def _check(self) -> None:
        """Cheap sanity, as Kafka has it: the last entry is not before the first, nor before the segment."""
        if self._count:
            first, last = self._raw(0), self._raw(self._count - 1)
            if last[self._offset] < 0 or last[self._key] < first[self._key]:
                raise CorruptIndexError(f"{self.path}: last entry {last} can't follow the first, {first}")

    def _raw(self, number: int) -> tuple[int, int]:
        size = self._entry.size
        if number >= self._count:
            first, second = self._entry.unpack_from(self._tail, (number - self._count) * size)
        else:
            data = self._load().read(number * size, size)
            if len(data) != size:
                raise CorruptIndexError(f"{self.path}: entry {number} is cut off")
            first, second = self._entry.unpack(data)
        return first, second

    def _floor(self, key: int) -> int:
        """Number of the last entry whose key is <= `key`, -1 when there is none."""
        if self._count < 0:
            self._load()
        size, field = self._entry.size, self._key
        if self._tail and self._raw(self._count)[field] <= key:
            keys = [entry[field] for entry in self._entry.iter_unpack(self._tail)]
            return self._count + bisect_right(keys, key) - 1
        block = self._block_of(key, self._count)
        if block < 0:
            return -1
        start = block * BLOCK_ENTRIES
        data = self._load().read(start * size, min(BLOCK_ENTRIES, self._count - start) * size)
        keys = [entry[field] for entry in self._entry.iter_unpack(data[: len(data) // size * size])]
        return start + bisect_right(keys, key) - 1

    def _block_of(self, key: int, count: int) -> int:
        """The last of the blocks of `count` entries that begins with a key <= `key`, -1 when there is none."""
        blocks = range((count + BLOCK_ENTRIES - 1) // BLOCK_ENTRIES)
        return bisect_right(blocks, key, key=lambda block: self._raw(block * BLOCK_ENTRIES)[self._key]) - 1

    def _recount(self) -> None:
        self.entries_left = self.max_entries - self._spare - self._count - len(self._tail) // self._entry.size

    def _append(self, first: int, second: int) -> None:
        if self._count < 0:
            self._load()
        tail = self._tail
        tail += self._entry.pack(first, second)
        self.entries_left -= 1
        if len(tail) >= _WRITE_BEHIND_BYTES:
            self.write()

    def write(self) -> None:
        """Hand the entries that wait in memory, and no zeros after them, to the file."""
        if self._file is None and not self._tail and not self._before:
            return
        file = self._load()
        size = self._entry.size
        before, self._before = self._before, b""
        if before and before == self._tail:
            self._count = len(before) // size
            self._tail = bytearray()
            return
        if before:
            file.truncate(0)
        end = self._count * size
        if self._tail:
            file.write(end, (self._tail,))
            self._count += len(self._tail) // size
            end += len(self._tail)
            self._tail = bytearray()
        if file.size > end:
            file.truncate(end)

    def _cut(self, entries: int) -> None:
        self.write()
        if entries < self._count:
            self.changes += 1
            self._count = entries
            self._load().truncate(entries * self._entry.size)
            self._recount()

    def truncate_to(self, offset: int) -> None:
        """Forget entries for `offset` and later."""
        self.write()
        relative = offset - self.base_offset
        self._cut(bisect_left(range(self.entries), relative, key=lambda number: self._raw(number)[self._offset]))

    def reset(self) -> None:
        """Empty the index before a rebuild.

        A small file is emptied by the next `write` or `write_if_reset`, if it is not the same then: a truncation waits
        for the disk, and a start after a crash makes the indexes of thousands of logs again.
        """
        if self._file is None:
            self._file = self._disk.open(self.path)
        self._tail = bytearray()
        self._count = 0
        self.changes += 1
        size = self._file.size
        self._before = self._file.read(0, size) if size <= _WRITE_BEHIND_BYTES else b""
        if size and not self._before:
            self._file.truncate(0)
        self._recount()

    def write_if_reset(self) -> None:
        """After `reset`, if there is nothing to write."""
        if self._before:
            self.write()

    def release(self) -> File | None:
        """Give the open file away, to be closed once nobody reads it any more. Entries that wait in memory are lost."""
        file, self._file = self._file, None
        self._tail = bytearray()
        self._before = b""
        self._count = _UNKNOWN
        self.changes += 1
        return file

    def park(self) -> None:
        """Close the file until the next use, and keep what is known of it and the entries that wait in memory."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        self.write()
        file = self.release()
        if file is not None:
            file.close()


class OffsetIndex(_SortedIndex):
    """`.index`: at which position to start looking for an offset."""

    __slots__ = ()
    _entry = Struct(">ii")
    _key = 0
    _offset = 0

    def fits(self, offset: int) -> bool:
        """A segment can hold offsets up to 2^31 - 1 above its own."""
        return 0 <= offset - self.base_offset <= _INT_MAX

    def append(self, offset: int, position: int) -> None:
        self._append(offset - self.base_offset, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry at or before `offset`; the segment's start when there is none."""
        number = self._floor(offset - self.base_offset)
        if number < 0:
            return OffsetPosition(self.base_offset, 0)
        return self.entry(number)

    def first_from(self, position: int) -> OffsetPosition | None:
        """The first entry at or after a position."""
        entries = self.entries
        number = bisect_left(range(entries), position, key=lambda number: self._raw(number)[1])
        return self.entry(number) if number < entries else None

    def block_of(self, relative: int) -> int:
        """The block in which to look for an offset, given relative to the segment's: the first if it is before all."""
        return max(0, self._block_of(relative, self.entries))

    def read_block(self, number: int) -> bytes:
        """A block's entries as they are in the file; empty behind the last."""
        if self._count < 0:
            self._load()
        size, count = self._entry.size, self._count
        first, behind = number * BLOCK_ENTRIES, (number + 1) * BLOCK_ENTRIES
        data = b""
        if first < count:
            length = (min(behind, count) - first) * size
            data = self._load().read(first * size, length)
            if len(data) != length:
                raise CorruptIndexError(f"{self.path}: block {number} is cut off")
        if behind > count:
            data += self._tail[max(0, first - count) * size : (behind - count) * size]
        return data

    def entry(self, number: int) -> OffsetPosition:
        relative, position = self._raw(number)
        return OffsetPosition(self.base_offset + relative, position)

    @property
    def last_entry(self) -> OffsetPosition:
        entries = self.entries
        return self.entry(entries - 1) if entries else OffsetPosition(self.base_offset, 0)


class TimeIndex(_SortedIndex):
    """`.timeindex`: at which offset to start looking for a timestamp."""

    __slots__ = ()
    _entry = Struct(">qi")
    _key = 0
    _offset = 1
    _spare = 1

    def append(self, timestamp: int, offset: int) -> None:
        """Note that nothing up to `offset` is later than `timestamp`, which is later than that of the last entry."""
        self._append(timestamp, offset - self.base_offset)

    def append_if_later(self, timestamp: int, offset: int) -> None:
        """As `append`, if it is news."""
        last = self.last_entry
        if timestamp > last.timestamp and offset >= last.offset:
            self._append(timestamp, offset - self.base_offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry that is not later than `timestamp`; (-1, base offset) when there is none."""
        number = self._floor(timestamp)
        return self.entry(number) if number >= 0 else TimestampOffset(-1, self.base_offset)

    def entry(self, number: int) -> TimestampOffset:
        timestamp, relative = self._raw(number)
        return TimestampOffset(timestamp, self.base_offset + relative)

    @property
    def last_entry(self) -> TimestampOffset:
        entries = self.entries
        return self.entry(entries - 1) if entries else TimestampOffset(-1, self.base_offset)
