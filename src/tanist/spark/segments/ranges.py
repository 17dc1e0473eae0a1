"""Cutting segment files into stretches for tasks, and leaving out what filters cannot want.

Owns the way from wanted offsets and times to byte ranges, by the names of segments and by Kafka's index files. An index
is a hint: a position is only used if a batch with a right CRC stands there and has the offset that the index says, so a
damaged index costs time and no rows. The time index is believed where it can be read; `indexes=false` does without all.

No cut is ever made between batches that have not been looked at: without an index the headers are walked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tanist.log.names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from tanist.log.scan import DamagedBatch, scan_headers, verified_batches
from tanist.ports import File
from tanist.spark.segments.replica_files import SegmentFile
from tanist.spark.stores import opened

STRETCH_BYTES: Final = 128 << 20

_OFFSET_ENTRY: Final = np.dtype([("key", ">i4"), ("value", ">i4")])
_TIME_ENTRY: Final = np.dtype([("key", ">i8"), ("value", ">i4")])
_INDEX_BYTES_MAX: Final = 64 << 20
"""Kafka's largest index is 10 MB by default; a file that is larger is not read."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Inclusive; None: no bound."""

    least_offset: int | None = None
    most_offset: int | None = None
    least_timestamp_ms: int | None = None

    @property
    def any(self) -> bool:
        return not (self.least_offset is self.most_offset is self.least_timestamp_ms is None)


def stretches(
    segment: SegmentFile, bounds: Bounds, *, target_bytes: int = STRETCH_BYTES, indexes: bool = True
) -> Iterator[tuple[int, int]]:
    """Byte ranges of the file that hold everything within the bounds, each of about `target_bytes`."""
    for _, start, end in several_stretches(segment, [bounds], target_bytes=target_bytes, indexes=indexes):
        yield start, end


def several_stretches(
    segment: SegmentFile, wanted: Iterable[Bounds], *, target_bytes: int = STRETCH_BYTES, indexes: bool = True
) -> Iterator[tuple[Bounds, int, int]]:
    """The same for each of these bounds. The index is read once."""
    within = [bounds for bounds in wanted if _may_hold(segment, bounds)]
    if not within:
        return
    try:
        file = opened(segment.path, segment.size_bytes)
    except FileNotFoundError:
        return  # by retention, since it was listed
    with closing(file):
        index = _NO_INDEX
        if indexes and segment.salvage_id is None and (file.size > target_bytes or any(each.any for each in within)):
            index = _offset_index(segment)
        for bounds in within:
            start, end = 0, file.size
            if bounds.any and len(index):
                start, end = _narrowed(file, segment, index, bounds)
            for first, last in _cut(file, index, start, end, target_bytes):
                yield bounds, first, last


def _may_hold(segment: SegmentFile, bounds: Bounds) -> bool:
    if bounds.most_offset is not None and segment.base_offset > bounds.most_offset:
        return False
    following = segment.following_offset
    return bounds.least_offset is None or following is None or following > bounds.least_offset


@dataclass(frozen=True, slots=True)
class _Index:
    """Two columns, as long as they ascend; planning must look at few of an index's entries, and at none in Python."""

    keys: Any
    """Last offsets of batches, or timestamps."""
    values: Any
    """Positions of batches, or offsets."""

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, number: int) -> tuple[int, int]:
        return int(self.keys[number]), int(self.values[number])


_NO_INDEX: Final = _Index(np.empty(0, np.int64), np.empty(0, np.int64))


def _first(column: Any, least: int) -> int:
    """The number of the first value that is not below."""
    return int(np.searchsorted(column, least))


def _narrowed(file: File, segment: SegmentFile, index: _Index, bounds: Bounds) -> tuple[int, int]:
    offsets = index.keys
    least = bounds.least_offset
    if bounds.least_timestamp_ms is not None:
        # No record up to that offset is later than the entry's time.
        times = _time_index(segment)
        early = _first(times.keys, bounds.least_timestamp_ms)
        if early:
            least = max(times[early - 1][1] + 1, -1 if least is None else least)
    start, end = 0, file.size
    if least is not None:
        # An entry's offset is the last of its batch: what begins there is the last batch that may be too early.
        for number in range(_first(offsets, least) - 1, -1, -1):
            if _stands_at(file, *index[number]):
                start = index[number][1]
                break
    if bounds.most_offset is not None:
        # The batch behind the first whose last offset is beyond the bound.
        for number in range(_first(offsets, bounds.most_offset + 1) + 1, len(index)):
            if _stands_at(file, *index[number]):
                end = index[number][1]
                break
    return start, max(start, end)


def _cut(file: File, index: _Index, start: int, end: int, target_bytes: int) -> Iterator[tuple[int, int]]:
    while end - start > target_bytes:
        number = _first(index.values, start + target_bytes)
        found = None
        # A few of them: a log whose index is wrong throughout is cut by its headers.
        for offset, position in (index[each] for each in range(number, min(number + 8, len(index)))):
            if position < end and _stands_at(file, offset, position):
                found = position
                break
        if found is None:
            found = _walked(file, start, end, target_bytes)
        yield start, found
        start = found
    if start < end:
        yield start, end


def _walked(file: File, start: int, end: int, target_bytes: int) -> int:
    """The first boundary that is far enough; the end of it all if the headers do not lead there."""
    with suppress(DamagedBatch):
        for batch in scan_headers(file, start, end):
            if batch.position - start >= target_bytes:
                return batch.position
    return end


def _stands_at(file: File, offset: int, position: int) -> bool:
    """Whether a sound batch begins there whose last offset is this one."""
    if not 0 < position < file.size:
        return False
    try:
        found = next(verified_batches(file, position, file.size), None)
    except DamagedBatch:
        return False
    return found is not None and found.header.last_offset == offset


def _offset_index(segment: SegmentFile) -> _Index:
    """Last offsets of batches, and their positions, ascending; what does not ascend ends it."""
    relative, positions = _entries(segment, INDEX_SUFFIX, _OFFSET_ENTRY)
    end = _sound_end(relative, positions, (relative > _before(relative)) & (positions > _before(positions)))
    return _Index(relative[:end] + segment.base_offset, positions[:end])


def _time_index(segment: SegmentFile) -> _Index:
    """Timestamps and offsets, both ascending; empty if it is damaged."""
    times, relative = _entries(segment, TIME_INDEX_SUFFIX, _TIME_ENTRY)
    sound = (times >= _before(times)) & (relative >= _before(relative)) & (relative >= 0)
    end = _sound_end(times, relative, sound)
    return _Index(times[:end], relative[:end] + segment.base_offset)


def _before(column: Any) -> Any:
    return np.concatenate([[-1], column[:-1]])


def _sound_end(keys: Any, values: Any, sound: Any) -> int:
    """How many entries count, of which some may not be sound."""
    wrong = np.flatnonzero(~sound)
    if not len(wrong):
        return len(keys)
    end = int(wrong[0])
    # Zeros that Kafka has allocated before they are needed; or damage.
    return 0 if keys[end] or values[end] else end


def _entries(segment: SegmentFile, suffix: str, entry: Any) -> tuple[Any, Any]:
    """Two columns, as they are in the file: offsets count from the segment's."""
    path = segment.path.removesuffix(LOG_SUFFIX) + suffix
    data = b""
    with suppress(OSError), closing(opened(path)) as file:
        if file.size <= _INDEX_BYTES_MAX:
            data = file.read(0, file.size)
    found = np.frombuffer(data, entry, len(data) // entry.itemsize)
    return found["key"].astype(np.int64), found["value"].astype(np.int64)
