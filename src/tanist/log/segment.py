"""One segment: a `.log` file, its indexes, and the positions of offsets in it.

Owns positions. A batch that is appended waits in `pending` (not copied) until `write` hands all of them to the file
with one call, so `size` may be ahead of the file's. It also waits there while the queue is written off the loop
(`write_later`); who needs it in the file meanwhile calls `write`.

The last batches are also known in memory: a fetch at the tail, as replicas and live consumers send it, finds its bytes
by bisection and does no I/O. Older ones are found by entries of the index that are kept in memory (`positions`); by a
walk over headers where there is no such entry.

A segment does not validate batches, and knows nothing of epochs or producers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from tanist.invariants import InvariantError
from tanist.log.config import LogConfig
from tanist.log.indexes import CorruptIndexError, OffsetIndex, TimeIndex, TimestampOffset
from tanist.log.names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_file,
)
from tanist.log.positions import NO_SPAN, IndexedPositions
from tanist.log.scan import BatchAt, DamagedBatch, scan_headers
from tanist.log.transaction_index import TransactionIndex
from tanist.ports import Buffer, Disk, File, FileRange, LateWrite

TAIL_BATCHES: Final = 4096
"""At least so many of the last batches are known in memory, at most twice as many: 24 bytes each."""

_NEVER: Final = -(2**63)
_LAST: Final = 2**63 - 1


class BatchPosition(NamedTuple):
    """Where a batch is in its segment."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int


class _Late(NamedTuple):
    """The part of the queue that is written off the loop."""

    write: LateWrite
    buffers: int
    """How many."""
    end: int
    """The position behind them."""


class Segment:
    """The batches from `base_offset` to the next segment's."""

    __slots__ = (
        "_directory",
        "_disk",
        "_firsts",
        "_index_interval",
        "_indexed",
        "_indexed_timestamp",
        "_lasts",
        "_late",
        "_mark",
        "_max_known",
        "_positions",
        "_since_index",
        "_syncing",
        "base_offset",
        "created_ms",
        "file",
        "given_to",
        "index_full",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "pending",
        "rolling_timestamp",
        "size",
        "time_index",
        "txn_index",
        "written",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        config: LogConfig,
        now_ms: int,
        names: Container[str] = (),
        mark: str = "",
    ) -> None:
        """Open or make the segment; `names` are those in the folder.

        The indexes are opened when they are first used, and closed by `park`. With a `mark` behind their names, the
        files are no segment's yet: a cleaning writes them, off the loop.
        """
        self._disk = disk
        self._directory = directory
        self._mark = mark
        self.base_offset = base_offset
        self.created_ms = now_ms
        self.file: File = disk.open(self.path(LOG_SUFFIX))
        self.size = self.file.size
        self.written = self.size
        """Up to here nothing is queued."""
        self.given_to = 0
        """Up to here readers were given ranges of the file, which may still be on their way."""
        self.pending: list[Buffer] = []
        self._late: _Late | None = None
        """What is being written off the loop; its buffers are the first of `pending`."""
        self.offset_index = OffsetIndex(disk, self.path(INDEX_SUFFIX), base_offset, config.segment_index_bytes)
        self._indexed = IndexedPositions(self.offset_index)
        self.time_index = TimeIndex(disk, self.path(TIME_INDEX_SUFFIX), base_offset, config.segment_index_bytes)
        txn_exists = offset_file(base_offset, TXN_INDEX_SUFFIX) + mark in names
        self.txn_index = TransactionIndex(disk, self.path(TXN_INDEX_SUFFIX), base_offset, exists=txn_exists)
        self.rolling_timestamp = -1
        """Latest timestamp of the first batch: the age of a segment counts from it. -1: not known."""
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        """Last offset of the batch that has it."""
        self._max_known = self.size == 0
        self.index_full = False
        self._index_interval = config.index_interval_bytes
        self._indexed_timestamp = _NEVER
        self._since_index = 0
        self._syncing = False
        """The indexes may be among files that are about to be synced."""
        self._firsts = array("q")
        self._lasts = array("q")
        self._positions = array("q")

    @property
    def next_offset(self) -> int:
        """Of the active segment: the offset after its last batch."""
        return self._lasts[-1] + 1 if self._lasts else self.base_offset

    def path(self, suffix: str) -> str:
        return f"{self._directory}/{offset_file(self.base_offset, suffix)}{self._mark}"

    # -- writing

    def append(self, first_offset: int, last_offset: int, max_timestamp: int, size: int) -> None:
        """Account for a batch behind the last. Its bytes are what the caller puts into `pending` next."""
        position = self.size
        lasts = self._lasts
        if lasts and first_offset <= lasts[-1]:
            raise InvariantError(
                "the offsets of a segment's batches ascend", first_offset=first_offset, last_offset_before=lasts[-1]
            )
        self._firsts.append(first_offset)
        lasts.append(last_offset)
        self._positions.append(position)
        if position == 0 or max_timestamp > self.max_timestamp or self._since_index > self._index_interval:
            self.note(last_offset, max_timestamp, position, size)
        else:
            self._since_index += size
        self.size = position + size

    def note(self, last_offset: int, max_timestamp: int, position: int, size: int) -> None:
        """Keep the indexes and the latest timestamp.

        One entry each once `index.interval.bytes` have passed since the last.
        """
        if position == 0:
            self.rolling_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._since_index > self._index_interval:
            self.offset_index.append(last_offset, position)
            if self.max_timestamp > self._indexed_timestamp:
                self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
                self._indexed_timestamp = self.max_timestamp
            self.index_full = self.offset_index.entries_left <= 0 or self.time_index.entries_left <= 0
            self._since_index = 0
            self.ease()
        self._since_index += size

    def write(self) -> None:
        """Write the queue to the file, in one call."""
        if self._late is not None:
            self._finish_late(self._late)
        pending = self.pending
        if pending:
            self.pending = []
            self.file.write(self.written, pending)
            if self.file.size != self.size:
                raise InvariantError(
                    "a segment's file ends where its last batch does", file_size=self.file.size, size=self.size
                )
            self.written = self.size
            self._bound_tail()

    def write_later(self, done: Callable[[OSError | None], None]) -> None:
        """Have the queue written off the loop; then call `done` in a later turn. Its memory must stay as it is."""
        if self._late is not None:
            self._finish_late(self._late)

        def written(error: OSError | None) -> None:
            if self._late is late and error is None:
                self._finish_late(late)
            done(error)

        buffers = tuple(self.pending)
        write = self._disk.write_later(self.file, self.written, buffers, written)
        self._late = late = _Late(write, len(buffers), self.size)

    def _finish_late(self, late: _Late) -> None:
        late.write.finish()
        self._late = None
        del self.pending[: late.buffers]
        self.written = late.end
        if not self.pending:
            self._bound_tail()

    @property
    def writes_late(self) -> bool:
        """Whether a part of the queue is being written off the loop."""
        return self._late is not None

    @property
    def unwritten_bytes(self) -> int:
        """The length of the queue, without what is being written off the loop."""
        return self.size - (self.written if self._late is None else self._late.end)

    def written_end(self, end_offset: int) -> int:
        """Of the active segment: the offset behind its last batch that is not queued; the log's end if none is."""
        if not self.pending:
            return end_offset
        index = bisect_left(self._positions, self.written)
        return self._firsts[index] if index < len(self._firsts) else end_offset

    def _bound_tail(self) -> None:
        if len(self._lasts) > 2 * TAIL_BATCHES:
            for column in (self._firsts, self._lasts, self._positions):
                del column[:-TAIL_BATCHES]

    def seal(self) -> None:
        """Write everything, the last time index entry included: on a roll and on close.

        A segment with batches has both indexes from then on, be they empty: one that is missing means a crash.
        """
        self.write()
        if self.size == 0:
            self.offset_index.write_if_reset()
            self.time_index.write_if_reset()
            return
        if self.latest_timestamp().timestamp >= 0:
            self.time_index.append_if_later(self.max_timestamp, self.max_timestamp_offset)
        for index in (self.offset_index, self.time_index):
            index.open()
            index.write()
        self.ease()

    def park(self) -> None:
        """Close the indexes until they are used again. Nobody syncs them now."""
        self._syncing = False
        self.offset_index.park()
        self.time_index.park()
        self.txn_index.park()

    def ease(self) -> None:
        """After a use of the indexes: close them if too many files are open. Those of a cleaning stay open, for it uses
        them off the loop.
        """
        if not self._mark and not self._syncing and self._disk.crowded():
            self.park()

    def files(self) -> list[File]:
        """The files to sync for the segment to survive, once sealed. The indexes are open until `park`."""
        self._syncing = True
        files = [self.file, self.offset_index.file, self.time_index.file]
        transactions = self.txn_index.file
        return files if transactions is None else [*files, transactions]

    # -- finding

    def given(self, start: int, end: int) -> FileRange:
        """Bytes for a reader."""
        if end > self.given_to:
            self.given_to = end
        return FileRange(self.file, start, end - start)

    def find(self, offset: int) -> BatchPosition | None:
        """The first batch that reaches `offset`; None if none does. `DamagedBatch` if the file is broken on the way."""
        lasts = self._lasts
        if lasts and offset >= self._firsts[0]:
            index = bisect_left(lasts, offset)
            return self._place(index) if index < len(lasts) else None
        for position, header in self.walk(offset):
            if header.last_offset >= offset:
                return BatchPosition(position, header.size_bytes, header.base_offset, header.last_offset)
        return None

    def _place(self, index: int) -> BatchPosition:
        position = self._positions[index]
        end = self._positions[index + 1] if index + 1 < len(self._positions) else self.size
        return BatchPosition(position, end - position, self._firsts[index], self._lasts[index])

    def span(self, offset: int, max_bytes: int, upper_offset: int, at_least_one: bool) -> tuple[int, int, int] | None:
        """(start, end, first offset) of the batches from the one that reaches `offset` on, all wholly below
        `upper_offset`: at most `max_bytes`, but `at_least_one` batch; start and end are the same if there are none.

        None if these batches are not all known in memory: then `find` and `end_of` look into the file.
        """
        firsts = self._firsts
        if not firsts or offset < firsts[0]:
            return None
        lasts, positions = self._lasts, self._positions
        index = bisect_left(lasts, offset)
        if index == len(lasts) or lasts[index] >= upper_offset:
            return NO_SPAN
        start = positions[index]
        limit = self.size if upper_offset > lasts[-1] else positions[bisect_left(lasts, upper_offset, index)]
        end = start + max_bytes
        if end >= limit:
            end = limit
        else:
            last = bisect_right(positions, end, index) - 1
            if last > index:
                end = positions[last]
            elif at_least_one:
                end = positions[index + 1] if index + 1 < len(positions) else limit
            else:
                return NO_SPAN
        return start, end, firsts[index]

    def indexed_span(
        self, offset: int, max_bytes: int, upper_offset: int, at_least_one: bool, bounded: bool
    ) -> tuple[int, int, int] | None:
        """As `span`, for batches before those that are known in memory, by entries of the index that are.

        If it is not `bounded`, the upper offset is beyond all of the segment. None if the index does not say, or says
        what is not so: then `find` looks into the file.
        """
        lasts = self._lasts
        limit = self.size
        if bounded and not (lasts and upper_offset > lasts[-1]):
            if not lasts or upper_offset < self._firsts[0]:
                return None
            limit = self._positions[bisect_left(lasts, upper_offset)]
        span = self._indexed.span(self.file, offset, max_bytes, upper_offset, limit, at_least_one)
        if self._indexed.has_read:
            self._indexed.has_read = False
            self.ease()
        return span

    def forget_positions(self) -> None:
        """Nobody has read its older batches lately."""
        self._indexed.forget()

    def end_of(self, upper_offset: int | None, limit: int) -> int:
        """Where the batches end that lie below `upper_offset` (None.

        All do) and, as far as is known, before `limit`.
        """
        positions = self._positions
        if upper_offset is not None and not (self._lasts and upper_offset > self._lasts[-1]):
            limit = self._bounded(upper_offset, limit)
        if limit >= self.size:
            return self.size
        index = bisect_right(positions, limit) - 1
        return positions[index] if index >= 0 else limit

    def _bounded(self, upper_offset: int, limit: int) -> int:
        lasts = self._lasts
        if lasts and upper_offset >= self._firsts[0]:
            return min(limit, self._positions[bisect_left(lasts, upper_offset)])
        # The index tells whether the bound is far away, as it mostly is; only else is the file looked into.
        position = self.estimate_position(upper_offset)
        if position >= limit and self._starts_batch(position, upper_offset):
            return limit
        place = self.find(upper_offset)
        return limit if place is None else min(limit, place.position)

    def offset_bound(self, position: int) -> int | None:
        """An offset above those of all batches that begin before a position, and near it; None if none is known."""
        positions = self._positions
        if positions and position >= positions[0]:
            index = bisect_left(positions, position)
            return self._firsts[index] if index < len(positions) else None
        try:
            entry = self.offset_index.first_from(position)
            if entry is not None and self._starts_batch(entry.position, entry.offset):
                return entry.offset
        except CorruptIndexError:
            return None
        finally:
            self.ease()
        return self._firsts[0] if positions else None

    def estimate_position(self, offset: int) -> int:
        """A position at or before the batch that holds `offset`, without looking into the file."""
        lasts = self._lasts
        if lasts and offset >= self._firsts[0]:
            index = bisect_left(lasts, offset)
            return self._positions[index] if index < len(lasts) else self.size
        try:
            return min(self.offset_index.lookup(offset).position, self.size)
        except CorruptIndexError:
            return 0
        finally:
            self.ease()

    def walk(self, offset: int) -> Iterator[BatchAt]:
        """The batches from somewhere at or before the one that holds `offset` to the end of the segment."""
        self.write()
        try:
            start = self.offset_index.lookup(offset).position
        except CorruptIndexError:
            start = -1
        if start and not self._starts_batch(start, offset):
            self.rebuild_indexes()
            start = self.offset_index.lookup(offset).position
        self.ease()
        return self._batches(start)

    def _batches(self, start: int) -> Iterator[BatchAt]:
        """From a position on, with `DamagedBatch` where an offset does not ascend or is not this segment's."""
        least = self.base_offset
        for batch in scan_headers(self.file, start, self.size):
            if batch.header.base_offset < least or not self.offset_index.fits(batch.header.last_offset):
                raise DamagedBatch(
                    self.file.path, batch.position, f"offset {batch.header.base_offset} where {least} or more is due"
                )
            least = batch.header.last_offset + 1
            yield batch

    def _starts_batch(self, position: int, offset: int) -> bool:
        """Can an index entry be right that sends those who look for `offset` to `position`?"""
        if not 0 < position < self.size:
            return False
        try:
            _, header = next(scan_headers(self.file, position, self.size))
        except DamagedBatch:
            return False
        return bool(self.base_offset <= header.base_offset <= offset)

    # -- time

    def latest_timestamp(self) -> TimestampOffset:
        """The latest timestamp, and the last offset of the batch that has it.

        (-1, base offset) when no record has one.
        """
        if not self._max_known:
            try:
                last = self.time_index.last_entry
            except CorruptIndexError:
                self.rebuild_indexes()
                last = self.time_index.last_entry
            if last.timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = last
            self._max_known = True
            self.ease()
        return TimestampOffset(self.max_timestamp, self.max_timestamp_offset)

    def first_timestamp(self) -> int:
        """Latest timestamp of the first batch, -1 if there is none."""
        if self.rolling_timestamp < 0 and self.size:
            self.write()
            for batch in scan_headers(self.file, 0, self.size):
                self.rolling_timestamp = batch.header.max_timestamp
                break
        return self.rolling_timestamp

    # -- repair

    def resume(self) -> int:
        """Take up a sealed segment as the active one: the offset after its last batch.

        Reads from the last index entry on, and so learns the batches at the tail.
        """
        next_offset = self.base_offset
        for column in (self._firsts, self._lasts, self._positions):
            del column[:]
        if self.size == 0:
            if any(self._disk.exists(index.path) for index in (self.offset_index, self.time_index)):
                self.reset_indexes()
                self.seal()
            return next_offset
        for position, header in self.walk(_LAST):
            self._firsts.append(header.base_offset)
            self._lasts.append(header.last_offset)
            self._positions.append(position)
            self._bound_tail()
            next_offset = header.last_offset + 1
        self._since_index = self.size - self.offset_index.last_entry.position
        self.latest_timestamp()
        self._indexed_timestamp = self.time_index.last_entry.timestamp
        self.index_full = self.offset_index.full or self.time_index.full
        self.ease()
        _, first = next(scan_headers(self.file, 0, self.size))
        self.rolling_timestamp = first.max_timestamp
        return next_offset

    def rebuild_indexes(self) -> None:
        """Make the offset and time index anew from the headers."""
        self.write()
        self.reset_indexes()
        for position, header in self._batches(0):
            self.note(header.last_offset, header.max_timestamp, position, header.size_bytes)
        self.seal()

    def reset_indexes(self) -> None:
        """Before a walk that calls `note` for each batch."""
        self.offset_index.reset()
        self.time_index.reset()
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset
        self._max_known = True
        self._indexed_timestamp = _NEVER
        self._since_index = 0
        self.index_full = False

    def cut_file(self, position: int) -> None:
        """End the file at the damage that recovery found: all indexed and noted batches lie before it."""
        self.file.truncate(position)
        self.size = self.written = position
        self.seal()

    def truncate_to(self, place: BatchPosition, now_ms: int) -> None:
        """Drop the batch at `place` and all behind it."""
        self.write()
        offset = place.base_offset
        self.txn_index.truncate_to(offset)
        try:
            self.offset_index.truncate_to(offset)
            self.time_index.truncate_to(offset)
            sound = True
        except CorruptIndexError:
            sound = False
        self.file.truncate(place.position)
        self.size = self.written = place.position
        if self.size == 0:
            self.rolling_timestamp = -1
            self.created_ms = now_ms
        if sound:
            self._find_latest()
        else:
            self.rebuild_indexes()

    @property
    def was_given_more(self) -> bool:
        """Whether it was cut below what readers were given: then nothing may be appended to its file any more.

        A range that waits to be sent would be sent with the new bytes in it. So would one that has been sent: a socket
        holds pages of the file, not copies, and on the same machine until the other side has read them.
        """
        return self.given_to > self.size

    def _find_latest(self) -> None:
        """The latest timestamp of what remains: that of the last entry, or of a batch after it."""
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last_entry
        self._max_known = True
        for _, header in self.walk(self.max_timestamp_offset):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset

    # -- leaving

    def rename(self, mark: str) -> None:
        """Put another mark behind the names of the files: the log's first, then the indexes'.

        As long as an index has the old mark, a start knows that the renaming was interrupted.
        """
        paths = [self.path(suffix) for suffix in SEGMENT_SUFFIXES]
        self._mark = mark
        for old, suffix in zip(paths, SEGMENT_SUFFIXES, strict=True):
            if self._disk.exists(old):
                self._disk.rename(old, self.path(suffix))

    def mark_deleted(self) -> list[str]:
        """Rename the files, so that they are no segment's any more; open handles stay good. The new paths.

        The log goes first: without it, the others are orphans that any start removes.
        """
        marked = []
        for suffix in SEGMENT_SUFFIXES:
            path = self.path(suffix)
            if self._disk.exists(path):
                self._disk.rename(path, path + DELETED_SUFFIX)
                marked.append(path + DELETED_SUFFIX)
        return marked

    def release(self) -> list[File]:
        """The open files, to be closed once nothing is being sent from them."""
        if self._late is not None:
            with suppress(OSError):
                self._late.write.finish()  # a thread may be using the file
            self._late = None
        self.pending = []
        indexes = (self.offset_index.release(), self.time_index.release(), self.txn_index.release())
        return [self.file, *(file for file in indexes if file is not None)]
