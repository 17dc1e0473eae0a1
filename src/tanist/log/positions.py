"""Entries of one offset index in memory: where readers of older batches find their bytes without a search on the disk.

An index has an entry for about each `index.interval.bytes` of its segment. They are read in blocks of 512, and the
blocks that were used last are kept: at most 64 KB for a segment, whatever its size. A reader that goes on where its
last answer ended finds its batch in a block that is there, and reads one more block for every 512 entries.

An entry is a hint, as the index is not trusted: the header of the batch at the position is compared with it.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from contextlib import suppress
from struct import Struct
from typing import Final

from tanist.log.indexes import CorruptIndexError, OffsetIndex
from tanist.log.scan import DamagedBatch, scan_headers
from tanist.ports import File
from tanist.wire.batch import HEADER_BYTES, LENGTH_OVERHEAD, MAGIC

BLOCKS_MAX: Final = 16
"""So many blocks are kept, 4 KB each."""
NO_SPAN: Final = (0, 0, 0)
"""Of `span`: there is no batch that may be given."""
_NO_BATCH: Final = (-1, -1, -1, -1)
_START: Final = Struct(">qi4xb6xi")
"""The start of a batch's header: base offset, length, magic, last offset delta."""


class Block:
    """Neighbouring entries of the index: the last offsets of batches, relative to the segment's, and positions."""

    __slots__ = ("lasts", "number", "positions", "used")

    def __init__(self, number: int, data: bytes) -> None:
        values = array("i", data)
        if sys.byteorder == "little":
            values.byteswap()
        self.number = number
        self.lasts = values[::2]
        self.positions = values[1::2]
        self.used = 0


class IndexedPositions:
    """The blocks of one index that are in memory."""

    __slots__ = ("_blocks", "_changes", "_firsts", "_index", "_uses", "has_read")

    def __init__(self, index: OffsetIndex) -> None:
        self._index = index
        self._blocks: list[Block] = []
        """In the order of the index."""
        self._firsts: list[int] = []
        """The first offset of each."""
        self._uses = 0
        self._changes = index.changes
        self.has_read = False
        """The index was read, and so its file may be open: its segment resets this."""

    def span(
        self, file: File, offset: int, max_bytes: int, upper_offset: int, limit: int, at_least_one: bool
    ) -> tuple[int, int, int] | None:
        """(start, end, first offset) of the batches of `file` from the one that reaches `offset` on.

        At most `max_bytes`, but `at_least_one` batch, and nothing behind `limit`, where a batch begins. It ends where
        an indexed batch begins, if that does not halve it, and may else cut the last batch. None if the index has no
        entry for the offset, or a wrong one.
        """
        try:
            found = self.reaching(offset - self._index.base_offset)
            if found is None:
                return None
            block, at = found
            start, first_offset, end, last_offset = self._batch(file, limit, block, at)
            if first_offset > offset:
                start, first_offset, end, last_offset = self._batch_between(file, limit, block, at, offset)
            if last_offset >= upper_offset:
                return NO_SPAN
            if start < 0 or end > limit:
                return None
            if start + max_bytes >= limit:
                return start, limit, first_offset
            if start + max_bytes < end:
                return (start, end, first_offset) if at_least_one else NO_SPAN
            return start, self._end(block, start, end, start + max_bytes), first_offset
        except CorruptIndexError:
            return None

    def _batch(self, file: File, limit: int, block: Block, at: int) -> tuple[int, int, int, int]:
        """(position, first offset, end, last offset) of the batch that an entry names, or `_NO_BATCH`."""
        position, base_offset = block.positions[at], self._index.base_offset
        if not 0 < position <= limit - HEADER_BYTES:
            return _NO_BATCH
        start = file.read(position, _START.size)
        if len(start) < _START.size:
            return _NO_BATCH
        first_offset, length, magic, delta = _START.unpack(start)
        last_offset = base_offset + block.lasts[at]
        if first_offset + delta != last_offset or not base_offset <= first_offset <= last_offset or magic != MAGIC:
            return _NO_BATCH
        return position, first_offset, position + max(length, 0) + LENGTH_OVERHEAD, last_offset

    def _batch_between(self, file: File, limit: int, block: Block, at: int, offset: int) -> tuple[int, int, int, int]:
        """As `_batch`, the first that reaches `offset`, from the entry before on, or from the start of the file."""
        if at:
            begin = block.positions[at - 1] if self._batch(file, limit, block, at - 1) is not _NO_BATCH else -1
        else:
            begin = -1 if block.number else 0
        if begin >= 0:
            with suppress(DamagedBatch):
                for position, header in scan_headers(file, begin, limit):
                    if header.last_offset >= offset:
                        return position, header.base_offset, position + header.size_bytes, header.last_offset
        return _NO_BATCH

    def _end(self, block: Block, start: int, first_end: int, end: int) -> int:
        """Where a span ends that may go up to `end`, which is not before the end of its first batch."""
        boundary = block.positions[bisect_right(block.positions, end) - 1]
        if boundary == block.positions[-1] and (following := self._after(block)) is not None:
            number = bisect_right(following.positions, end)
            boundary = following.positions[number - 1] if number else boundary
        return boundary if first_end <= boundary <= end and 2 * (boundary - start) > end - start else end

    def reaching(self, relative: int) -> tuple[Block, int] | None:
        """The first entry whose batch ends at the offset or later, as a block and the place in it.

        None if there is none. `CorruptIndexError` if the file can't be an index.
        """
        if self._changes != self._index.changes:
            self.forget()
        number = bisect_right(self._firsts, relative) - 1
        if number < 0 and self._blocks and not self._blocks[0].number:
            number = 0
        block = self._blocks[number] if number >= 0 else None
        if block is not None and relative <= block.lasts[-1]:
            self._uses += 1
            block.used = self._uses
            return block, bisect_left(block.lasts, relative)
        return self._find_on_disk(relative, block)

    def _after(self, block: Block) -> Block | None:
        """The block that follows; None at the end of the index."""
        at = bisect_right(self._firsts, block.lasts[0])
        if at < len(self._blocks) and self._blocks[at].number == block.number + 1:
            return self._blocks[at]
        return self._load(block.number + 1)

    def _find_on_disk(self, relative: int, before: Block | None) -> tuple[Block, int] | None:
        """Find the entry on the disk; `before` is the last block in memory that begins at the offset or before it."""
        self.has_read = True
        number = self._index.block_of(relative)
        block = before if before is not None and before.number == number else self._load(number)
        if block is not None and relative > block.lasts[-1]:
            # The last block may have grown since it was read.
            block = self._load(number) if block is before else block
            if block is not None and relative > block.lasts[-1]:
                block = self._after(block)
        if block is None or relative > block.lasts[-1]:
            return None
        return block, bisect_left(block.lasts, relative)

    def _load(self, number: int) -> Block | None:
        self.has_read = True
        data = self._index.read_block(number)
        if not data:
            return None
        block = Block(number, data)
        self._uses += 1
        block.used = self._uses
        at = bisect_left(self._firsts, block.lasts[0])
        if at < len(self._blocks) and self._blocks[at].number == number:
            self._blocks[at] = block
            return block
        self._blocks.insert(at, block)
        self._firsts.insert(at, block.lasts[0])
        if len(self._blocks) > BLOCKS_MAX:
            oldest = min(range(len(self._blocks)), key=lambda each: self._blocks[each].used)
            del self._blocks[oldest], self._firsts[oldest]
        return block

    def forget(self) -> None:
        """Entries were cut or written anew."""
        self._changes = self._index.changes
        self._blocks.clear()
        self._firsts.clear()
