"""The segments of one log, in order.

Owns the list, reads across it, and which sealed segments are not yet durable. A dropped segment's files are renamed at
once and closed later; `drain_deleted` hands out their paths, to be removed later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from typing import Final, NamedTuple

from tanist.log.config import LogConfig
from tanist.log.names import SWAP_SUFFIX, TXN_INDEX_SUFFIX, offset_file
from tanist.log.segment import Segment
from tanist.log.transaction_index import AbortedTransaction
from tanist.ports import Disk, File, FileRange

_tuple = tuple.__new__
"""Makes a named tuple without calling its `__new__`, which is Python."""


READ_LATELY_MAX: Final = 8
"""So many segments keep positions of older batches in memory, at most 70 KB each."""


class LogSlice(NamedTuple):
    """Batches to be sent. Without a copy: `chunk` is a range of the segment's file."""

    chunk: FileRange
    first_batch_offset: int
    """May be below the offset asked for, which is somewhere in the first batch."""

    @property
    def size_bytes(self) -> int:
        return self.chunk.length


class Segments:
    """Never empty: the last one is active."""

    __slots__ = (
        "_bases",
        "_deleted",
        "_directory",
        "_disk",
        "_list",
        "_read_lately",
        "_retired",
        "_unsynced",
        "active",
        "config",
    )

    def __init__(
        self, disk: Disk, directory: str, config: LogConfig, segments: Iterable[Segment], durable_below: int
    ) -> None:
        self._disk = disk
        self._directory = directory
        self.config = config
        self._list = list(segments)
        self._bases = [segment.base_offset for segment in self._list]
        self.active = self._list[-1]
        self._deleted: list[str] = []
        self._retired: list[File] = []
        self._read_lately: list[Segment] = []
        """They have positions of older batches in memory, the one that has had them for longest first."""
        self._unsynced = [
            segment for segment, end in zip(self._list[:-1], self._bases[1:], strict=True) if end > durable_below
        ]
        """Sealed segments whose files, indexes included, are not known to be durable."""

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._list)

    @property
    def first_base(self) -> int:
        return self._bases[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._list)

    def index_of(self, offset: int) -> int:
        """Index of the segment whose range `offset` falls into; 0 if it is before all."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def end_offset(self, index: int, log_end_offset: int) -> int:
        """Where the segment ends: the next one's base."""
        return self._bases[index + 1] if index + 1 < len(self._bases) else log_end_offset

    def at(self, index: int) -> Segment:
        return self._list[index]

    # -- reading

    def read(self, offset: int, max_bytes: int, upper_offset: int, at_least_one: bool) -> LogSlice | None:
        """Whole batches from the one that holds `offset` on, of one segment, all of them below `upper_offset`.

        Where the boundaries are not known in memory, the last batch may be cut by `max_bytes`, as in Kafka.
        """
        segment, index = self.active, -1
        bounded = True
        span = segment.span(offset, max_bytes, upper_offset, at_least_one)
        if span is None:
            if offset < segment.base_offset:
                index = self.index_of(offset)
                segment = self._list[index]
                bounded = upper_offset < self._bases[index + 1]
            if segment not in self._read_lately:
                self._note_reader_of(segment)
            if segment.pending:
                segment.write()  # an entry of the index may name one of these batches, which is to be in the file
            span = segment.indexed_span(offset, max_bytes, upper_offset, at_least_one, bounded)
        if span is not None:
            start, end, first_offset = span
            if start == end:
                return None
            if end > segment.written and segment.pending:
                segment.write()
            return _tuple(LogSlice, (segment.given(start, end), first_offset))
        place = segment.find(offset)
        while place is None and segment is not self.active:
            index += 1
            segment = self._list[index]
            place = segment.find(offset)
            bounded = upper_offset < self.end_offset(index, upper_offset + 1)
        if place is None or place.last_offset >= upper_offset:
            return None
        start = place.position
        end = segment.end_of(upper_offset if bounded else None, start + max_bytes)
        if end < start + place.size_bytes:
            if not at_least_one:
                return None
            end = start + place.size_bytes
        if end > segment.written and segment.pending:
            segment.write()
        return LogSlice(segment.given(start, end), place.base_offset)

    def _note_reader_of(self, segment: Segment) -> None:
        self._read_lately.append(segment)
        if len(self._read_lately) > READ_LATELY_MAX:
            self._read_lately.pop(0).forget_positions()

    def bytes_between(self, offset: int, upper_offset: int) -> int:
        """About how many bytes lie between two offsets: exact at the tail, to the next index entry elsewhere."""
        if upper_offset <= offset:
            return 0
        active = self.active
        if offset >= active.base_offset:
            return max(0, active.estimate_position(upper_offset) - active.estimate_position(offset))
        first, last = self.index_of(offset), self.index_of(upper_offset - 1)
        if first == last:
            segment = self._list[first]
            return max(0, segment.estimate_position(upper_offset) - segment.estimate_position(offset))
        between = sum(segment.size for segment in self._list[first + 1 : last])
        head = self._list[first]
        return head.size - head.estimate_position(offset) + between + self._list[last].estimate_position(upper_offset)

    def aborted_within(self, log_slice: LogSlice, start_offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that overlap a piece, which was read from `start_offset` on."""
        index = self.index_of(log_slice.first_batch_offset)
        if not any(segment.txn_index.exists for segment in self._list[index:]):
            return []
        bound = self._list[index].offset_bound(log_slice.chunk.offset + log_slice.chunk.length)
        if bound is None:
            bound = self.end_offset(index, upper_offset)
        return self.aborted_transactions(start_offset, min(bound, upper_offset))

    def aborted_transactions(self, start_offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that overlap [start, upper), by the `.txnindex` files from `start`'s on."""
        found: list[AbortedTransaction] = []
        for segment in self._list[self.index_of(start_offset) :]:
            for transaction in segment.txn_index.transactions(start_offset):
                if transaction.first_offset < upper_offset:
                    found.append(transaction)
                if transaction.last_stable_offset >= upper_offset:
                    return found
            segment.ease()
        return found

    def first_bases(self, count: int) -> list[int]:
        return self._bases[:count]

    def ranges_from(self, index: int, position: int) -> tuple[FileRange, ...]:
        """All bytes from `position` of a segment to the end of the log."""
        ranges = []
        for segment in self._list[index:]:
            if segment.size > position:
                ranges.append(FileRange(segment.file, position, segment.size - position))
            position = 0
        return tuple(ranges)

    # -- changing

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """Seal the active segment and begin the next."""
        self.active.seal()
        self._unsynced.append(self.active)
        segment = Segment(self._disk, self._directory, base_offset, self.config, now_ms)
        self._list.append(segment)
        self._bases.append(base_offset)
        self.active = segment
        return segment

    def drop_first(self, count: int) -> None:
        """Drop the oldest segments; at least one has to stay."""
        if not 0 <= count < len(self._list):
            raise ValueError(f"can't drop {count} of {len(self._list)} segments")
        for segment in self._list[:count]:
            self._retire(segment)
        del self._list[:count], self._bases[:count]

    def drop_from(self, index: int) -> int:
        """Drop the newest segments, the last first, so that a crash on the way leaves no hole; how many.

        One has to stay.
        """
        if not 0 < index <= len(self._list):
            raise ValueError(f"can't drop the segments from {index} on")
        count = self._retire_from(index)
        del self._list[index:], self._bases[index:]
        self._reactivate()
        return count

    def replace_from(self, index: int, base_offset: int, now_ms: int) -> int:
        """Drop the newest segments, as `drop_from` does, and begin one at `base_offset`; how many were dropped."""
        count = self._retire_from(index)
        self._list[index:] = [Segment(self._disk, self._directory, base_offset, self.config, now_ms)]
        self._bases[index:] = [base_offset]
        self._reactivate()
        return count

    def _retire_from(self, index: int) -> int:
        count = len(self._list) - index
        for segment in reversed(self._list[index:]):
            self._retire(segment)
        return count

    def holds(self, segments: Sequence[Segment]) -> bool:
        """Are these still neighbours in the list, none of them active?"""
        index = self.index_of(segments[0].base_offset)
        here = self._list[index : index + len(segments)]
        return segments[-1] is not self.active and len(here) == len(segments) and all(map(is_, here, segments))

    def replace(self, old: Sequence[Segment], cleaned: Segment, now_ms: int) -> None:
        """Put a cleaned segment in the place of the neighbours from which it was made.

        The order is Kafka's: a start can finish or undo it after a crash at any point (`log.crash_cleanup`). The names
        are durable when the caller has made the folder so.
        """
        base_offset = cleaned.base_offset
        transactions = cleaned.txn_index.file is not None
        cleaned.rename(SWAP_SUFFIX)
        for segment in old:
            self._retire(segment)
        cleaned.rename("")
        for file in cleaned.release():
            file.close()
        names = {offset_file(base_offset, TXN_INDEX_SUFFIX)} if transactions else ()
        fresh = Segment(self._disk, self._directory, base_offset, self.config, now_ms, names)
        index = self.index_of(base_offset)
        self._list[index : index + len(old)] = [fresh]
        self._bases[index : index + len(old)] = [base_offset]

    def _reactivate(self) -> None:
        self.active = self._list[-1]
        self._unsynced = [segment for segment in self._unsynced if segment is not self.active]

    def _retire(self, segment: Segment) -> None:
        for known in (self._unsynced, self._read_lately):
            if segment in known:
                known.remove(segment)
        self.adopt_deleted(segment.mark_deleted(), segment.release())

    def adopt_deleted(self, paths: Iterable[str], files: Iterable[File]) -> None:
        """Take charge of what is left of dropped segments."""
        self._deleted += paths
        self._retired += files

    def drain_deleted(self) -> list[str]:
        """Paths of files that may be removed after `file.delete.delay.ms`; each is given once."""
        deleted, self._deleted = self._deleted, []
        return deleted

    @property
    def has_retired(self) -> bool:
        """Whether files of dropped segments are still open."""
        return bool(self._retired)

    def close_retired(self) -> None:
        """Close the files of dropped segments. Not in the turn that drops them: it may have a response made of them."""
        retired, self._retired = self._retired, []
        for file in retired:
            file.close()

    # -- durability

    def unsynced_files(self, from_offset: int, end_offset: int) -> list[File]:
        """The files to sync so that everything in segments below `end_offset` is durable, if what is below
        `from_offset` is.
        """
        sealed = (file for segment in self._unsynced for file in segment.files())
        # An empty index is synced as well: a name that is lost makes recovery read its segment.
        files = [file for file in sealed if file.synced < file.size or file.size == 0]
        first = bisect_left(self._bases, from_offset)
        for segment in self._list[max(0, first - 1) :]:
            if segment.base_offset >= end_offset:
                break
            if segment not in self._unsynced and segment.file.synced < segment.file.size:
                files.append(segment.file)
        return files

    def confirmed(self, flushed_offset: int, offset: int) -> int:
        """How far the files between the two offsets are synced: `offset`, or the base of the first segment that is not.

        A sync may have begun before a truncation, and confirm bytes that are others by now.
        """
        for index in range(self.index_of(flushed_offset), len(self._list)):
            segment = self._list[index]
            if segment.base_offset >= offset:
                break
            whole = index + 1 < len(self._bases) and self._bases[index + 1] <= offset
            needed = segment.size if whole else segment.estimate_position(offset)
            if segment.file.synced < needed:
                return max(segment.base_offset, min(flushed_offset, offset))
        return offset

    def durable_before(self, offset: int, log_end_offset: int) -> int:
        """The recovery point that `offset` allows: it must stay within a segment whose indexes are not durable.

        Recovery reads the segment of the recovery point and those after it, so the indexes of earlier ones must be
        whole. Those of the active segment never are, and it may roll at its present end the next moment.
        """
        while self._unsynced:
            segment = self._unsynced[0]
            if any(file.synced < file.size for file in segment.files()):
                return self._within(segment, offset, log_end_offset)
            del self._unsynced[0]
            segment.park()  # it is read at most from now on
        return self._within(self.active, offset, log_end_offset)

    def _within(self, segment: Segment, offset: int, log_end_offset: int) -> int:
        following = bisect_right(self._bases, segment.base_offset)
        end = self._bases[following] if following < len(self._bases) else log_end_offset
        return max(segment.base_offset, min(offset, end - 1))

    def seal(self) -> None:
        """As on a roll: everything is in the files, last time index entry included."""
        self.active.seal()
        if self.active not in self._unsynced:
            self._unsynced.append(self.active)

    def close(self) -> None:
        """After `seal`: close the files."""
        for segment in self._list:
            for file in segment.release():
                file.close()
        self.close_retired()
