"""Search by time: ListOffsets by timestamp, and the latest timestamp.

Owns the search down to the record. The time index leads to a batch, and that one batch is decoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tanist.log.indexes import CorruptIndexError
from tanist.log.scan import BatchAt, DamagedBatch, read_batch
from tanist.log.segment import Segment
from tanist.wire.batch import decode_batch
from tanist.wire.errors import WireError


class TimestampedOffset(NamedTuple):
    """An answer of ListOffsets."""

    timestamp: int
    offset: int
    leader_epoch: int


def offset_for_timestamp(segments: Iterable[Segment], timestamp: int, start_offset: int) -> TimestampedOffset | None:
    """The first record at or above `start_offset` that is not earlier than `timestamp`."""
    for segment in segments:
        if segment.latest_timestamp().timestamp < timestamp:
            continue
        for batch in segment.walk(_search_from(segment, timestamp, start_offset)):
            header = batch.header
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            found = _first_in(segment, batch, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _search_from(segment: Segment, timestamp: int, start_offset: int) -> int:
    try:
        indexed = segment.time_index.lookup(timestamp)
    except CorruptIndexError:
        segment.rebuild_indexes()
        indexed = segment.time_index.lookup(timestamp)
    segment.ease()
    # The entry's batch is the first to reach its timestamp, so nothing before that batch is as late as we look for.
    return max(indexed.offset, start_offset, segment.base_offset)


def _first_in(segment: Segment, batch: BatchAt, timestamp: int, start_offset: int) -> TimestampedOffset | None:
    header = batch.header
    if header.is_log_append_time and header.record_count == header.last_offset_delta + 1:
        return TimestampedOffset(header.max_timestamp, max(header.base_offset, start_offset), header.leader_epoch)
    try:
        records = decode_batch(read_batch(segment.file, batch))
    except WireError as error:
        raise DamagedBatch(segment.file.path, batch.position, str(error)) from error
    for record in records:
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return TimestampedOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def max_timestamp(segments: Iterable[Segment], start_offset: int) -> TimestampedOffset | None:
    """The first record that has the latest timestamp of all, -1 if no record has one; None when there is no record."""
    latest, holder = -1, None
    for segment in segments:
        timestamp = segment.latest_timestamp().timestamp
        if holder is None or timestamp > latest:
            latest, holder = timestamp, segment
    return None if holder is None else offset_for_timestamp((holder,), latest, start_offset)
