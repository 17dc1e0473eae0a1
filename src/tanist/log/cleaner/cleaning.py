"""One cleaning of one log: the keys of the dirty part are mapped, then all segments up to there are written anew.

Owns the choice of what a cleaning keeps, the same as Apache Kafka 4.3's (KIP-534 for delete horizons, KIP-98 for
transactions):

* of each key in the map, the record at its latest offset, and everything behind the mapped part;
* a tombstone until its horizon, which it gets when a cleaning first comes by;
* the last batch, in the cleaned part, of each producer that is remembered, empty if need be, so that its sequences do
  not fall back. (Kafka takes its last batch of all, which a crash or another leader may remove again);
* the last batch of each new segment (Kafka: of the round), so that its end does not, and the next start sees that
  nothing was lost behind it;
* the markers that `cleaner.transactions` names, and no aborted records.

One rule more than Kafka: the first batch of each leader epoch stays, empty if need be. A replica that copies the log
learns from its batches where epochs began; without that batch it would place the epoch too late, and as a leader it
would not make a follower truncate records of another history (rules 109-114).

A cleaning is a generator of steps: `Job` is run off the loop, `Sync` is waited for, and the code between is short and
runs on the loop. It opens the files itself, so that retention may drop segments meanwhile. Each group of segments
becomes one, under `.cleaned`, and is swapped in when it is durable (`Log.swap_in`); then the next. A crash at any point
leaves the old or the new segments, whole. It must never be used on a log without the last stable offset in its
`Cleanable`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from tanist.log.cleaner.key_map import KeyMap
from tanist.log.cleaner.records import body_of, stored_records, with_records, without_records
from tanist.log.cleaner.transactions import CleanedTransactions
from tanist.log.compaction import Cleanable, grouped
from tanist.log.indexes import CorruptIndexError
from tanist.log.log import Log
from tanist.log.names import CLEANED_SUFFIX, LOG_SUFFIX, SEGMENT_SUFFIXES, offset_file
from tanist.log.scan import BatchAt, DamagedBatch, crc_of, fault_of, read_batch
from tanist.log.segment import Segment
from tanist.ports import Buffer, Disk, File
from tanist.wire.batch import ATTRIBUTES_AT, HEADER, HEADER_BYTES, MAX_TIMESTAMP_AT, RECORD_COUNT_AT, BatchHeader
from tanist.wire.crc import crc32c
from tanist.wire.errors import WireError

SLICE_BYTES: Final = 128 * 1024
"""The bytes that one job reads: it bounds how long other threads wait for the interpreter."""
_POSITION_MAX: Final = 2**31 - 1


class CannotClean(Exception):
    """The log cannot be cleaned in this state; nothing changes."""


class Overtaken(Exception):
    """Retention, a truncation or the end of the replica came first: the unfinished part is dropped."""


@dataclass(frozen=True, slots=True)
class Job:
    """A step to run off the loop. It returns the number of bytes read and written."""

    run: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Sync:
    """Make these files durable."""

    files: Sequence[File]


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The result of a cleaning."""

    end_offset: int
    """The log is clean up to here."""
    size_before_bytes: int
    size_after_bytes: int
    records_dropped: int
    keys: int


Steps: TypeAlias = Generator[Job | Sync, Any, Cleaned]


class LogCleaning:
    """Begin with `steps`, once."""

    def __init__(self, disk: Disk, log: Log, cleanable: Cleanable, keys: KeyMap, now_ms: int, wall_ms: int) -> None:
        self._disk = disk
        self._log = log
        self._cleanable = cleanable
        self._keys = keys
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._delete_retention_ms = log.config.delete_retention_ms
        self._epoch = -1
        """The leader epoch of the batches that were met last."""
        self._group_end = -1
        self._producers: dict[int, tuple[int, int]] = {}
        """Producer id -> last offset and epoch of those that are remembered now."""
        self._last_of: dict[tuple[int, bool], int] = {}
        """(producer id, control batch or not) -> the end of its last one in the part that was mapped."""
        self._full = False
        self._before_bytes = self._after_bytes = self._dropped = 0

    def steps(self) -> Steps:
        """The cleaning. `Overtaken`, `CannotClean` or `OSError` end it; throw `Overtaken` in to give it up."""
        self._producers = {
            producer_id: (entry.last_offset, entry.epoch) for producer_id, entry in self._log.producers.entries.items()
        }
        try:
            yield from self._map_keys()
            end_offset = self._keys.latest_offset + 1
            if end_offset <= self._cleanable.first_dirty_offset:
                raise CannotClean(f"a batch has more keys than the map holds, which are {self._keys.keys_max}")
            transactions = CleanedTransactions()
            segments = self._log.sealed_segments(end_offset)
            for group in grouped(segments, self._log.config, self._cleanable.first_uncleanable_offset):
                yield from self._clean(group, transactions)
        except (DamagedBatch, CorruptIndexError, WireError) as fault:
            raise CannotClean(str(fault)) from fault
        self._log.cleaned_to(end_offset)
        return Cleaned(end_offset, self._before_bytes, self._after_bytes, self._dropped, len(self._keys))

    # -- the keys of the dirty part

    def _map_keys(self) -> Generator[Job | Sync, Any, None]:
        log, start, end = self._log, self._cleanable.first_dirty_offset, self._cleanable.first_uncleanable_offset
        transactions = CleanedTransactions()
        transactions.expect(log.aborted_transactions(start, end))
        segments = log.sealed_segments(end)
        ends = [*(segment.base_offset for segment in segments[1:]), end]
        for segment, segment_end in zip(segments, ends, strict=True):
            if segment_end <= start:
                continue
            walk = self._walk(segment)
            try:
                while walk.goes_on and not self._full:
                    yield Job(partial(self._map_slice, walk, transactions))
            finally:
                walk.file.close()
            if self._full:
                return
            self._keys.latest_offset = max(self._keys.latest_offset, segment_end - 1)

    def _map_slice(self, walk: _Walk, transactions: CleanedTransactions) -> int:
        keys, start = self._keys, self._cleanable.first_dirty_offset
        begun = walk.position
        for header, batch in walk.slice():
            if header.last_offset < start:
                continue
            if header.is_control:
                transactions.may_drop_marker(header, batch)
            elif not transactions.drops_batch(header):
                base_offset = header.base_offset
                for record in stored_records(body_of(batch, header), header.record_count):
                    offset = base_offset + record.offset_delta
                    if record.key is not None and offset >= start and not keys.put(record.key, offset):
                        self._full = True
                        return walk.position - begun
            if header.producer_id in self._producers:
                self._last_of[header.producer_id, header.is_control] = header.last_offset
            keys.latest_offset = header.last_offset
        return walk.position - begun

    # -- a group of segments becomes one

    def _clean(self, group: Sequence[Segment], transactions: CleanedTransactions) -> Generator[Job | Sync, Any, None]:
        log = self._log
        cleaned = self._new_segment(group[0].base_offset)
        self._group_end = log.segment_end(group[-1])
        try:
            transactions.keep = cleaned.txn_index.append
            for segment in group:
                walk = self._walk(segment)
                try:
                    aborted = log.aborted_transactions(segment.base_offset, log.segment_end(segment))
                    if aborted:
                        cleaned.txn_index.open()
                        transactions.expect(aborted)
                    while walk.goes_on:
                        yield Job(partial(self._clean_slice, walk, cleaned, transactions))
                finally:
                    walk.file.close()
            yield Job(partial(_seal, cleaned))
            yield Sync(cleaned.files())
            before_bytes, after_bytes = sum(segment.size for segment in group), cleaned.size
        except Exception:  # any at all: a failed job of another thread is raised here too; the cause goes on
            self._discard(cleaned)
            raise
        if not log.swap_in(cleaned, group, self._now_ms):
            self._discard(cleaned)
            raise Overtaken(f"segments of {log.topic_partition} were dropped")
        self._before_bytes += before_bytes
        self._after_bytes += after_bytes

    def _clean_slice(self, walk: _Walk, cleaned: Segment, transactions: CleanedTransactions) -> int:
        read_from, written_from = walk.position, cleaned.size
        for header, batch in walk.slice():
            kept = self._kept(header, batch, transactions)
            if kept is not None:
                if cleaned.size + len(kept) > _POSITION_MAX:
                    raise CannotClean(f"{cleaned.file.path} becomes too large")
                cleaned.append(header.base_offset, header.last_offset, _max_timestamp(kept), len(kept))
                cleaned.pending.append(kept)
        cleaned.write()
        return walk.position - read_from + cleaned.size - written_from

    def _kept(self, header: BatchHeader, batch: memoryview, transactions: CleanedTransactions) -> Buffer | None:
        """The part of a batch that stays: all, some records, its empty header, or None."""
        begins_epoch = header.leader_epoch > self._epoch
        if begins_epoch:
            self._epoch = header.leader_epoch
        must_stay = begins_epoch or header.next_offset == self._group_end or self._is_last_of_producer(header)
        past_horizon = header.has_horizon and header.base_timestamp <= self._wall_ms
        if header.is_control:
            may_go = transactions.may_drop_marker(header, batch)
            gone = header.record_count == 0 or (may_go and past_horizon)
            if not gone:
                if not may_go or header.has_horizon:
                    return batch
                body = body_of(batch, header)
                records = list(stored_records(body, header.record_count))
                return with_records(header, body, records, self._wall_ms + self._delete_retention_ms)
        else:
            gone = transactions.drops_batch(header) or header.record_count == 0
            if not gone:
                if header.base_offset > self._keys.latest_offset:
                    return batch
                thinned = self._thinned(header, batch, past_horizon)
                if thinned is not None:
                    return thinned
        self._dropped += header.record_count
        return without_records(header) if must_stay else None

    def _thinned(self, header: BatchHeader, batch: memoryview, past_horizon: bool) -> Buffer | None:
        """A batch of records, with those that are their keys' latest; None if there are none."""
        keys, latest_offset = self._keys, self._keys.latest_offset
        body = body_of(batch, header)
        kept = []
        tombstones = False
        for record in stored_records(body, header.record_count):
            offset = header.base_offset + record.offset_delta
            if offset <= latest_offset and (
                record.key is None or offset < keys.get(record.key) or (past_horizon and not record.has_value)
            ):
                continue
            kept.append(record)
            tombstones |= not record.has_value
        if not kept:
            return None
        new_horizon_ms = None
        if tombstones and not header.has_horizon:
            new_horizon_ms = self._wall_ms + self._delete_retention_ms
        if len(kept) == header.record_count and new_horizon_ms is None:
            return batch
        self._dropped += header.record_count - len(kept)
        return with_records(header, body, kept, new_horizon_ms)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Does the producer's state (its last sequence, or at least its epoch) depend on this batch?"""
        last = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        last_offset, epoch = last
        if header.is_control and 0 <= last_offset <= self._keys.latest_offset:
            return False  # its epoch is that of its last records
        if last_offset < 0 and header.is_control and header.producer_epoch == epoch:
            return True
        known = self._last_of.get((header.producer_id, header.is_control))
        if known is None and last_offset > self._keys.latest_offset:
            return True  # which of those that are left here is the last, only a walk over all of them would tell
        return header.last_offset == (last_offset if known is None else known)

    # -- files, on the loop

    def _walk(self, segment: Segment) -> _Walk:
        if not self._log.holds((segment,)):
            raise Overtaken(f"{segment.file.path} was dropped")
        file = self._disk.open(segment.path(LOG_SUFFIX), create=False)
        return _Walk(file, segment, self._log.segment_end(segment))

    def _new_segment(self, base_offset: int) -> Segment:
        log = self._log
        for suffix in SEGMENT_SUFFIXES:  # files of an abandoned cleaning that the disk did not remove then
            self._disk.remove(f"{log.directory}/{offset_file(base_offset, suffix)}{CLEANED_SUFFIX}")
        cleaned = Segment(self._disk, log.directory, base_offset, log.config, self._now_ms, mark=CLEANED_SUFFIX)
        for index in (cleaned.offset_index, cleaned.time_index):
            index.open()
        return cleaned

    def _discard(self, cleaned: Segment) -> None:
        """Nothing of it is in use. If it can't be removed, the next start does it."""
        for file in cleaned.release():
            file.close()
        with suppress(OSError):
            for suffix in SEGMENT_SUFFIXES:
                self._disk.remove(cleaned.path(suffix))


class _Walk:
    """The batches of a sealed segment, a slice at a time, their CRCs checked."""

    __slots__ = ("_end", "_end_offset", "_least", "file", "position")

    def __init__(self, file: File, segment: Segment, end_offset: int) -> None:
        self.file = file
        self.position = 0
        self._end = segment.size
        self._least = segment.base_offset
        self._end_offset = end_offset

    @property
    def goes_on(self) -> bool:
        return self.position < self._end

    def slice(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        """The next batches: those of `SLICE_BYTES`, one at least."""
        chunk = self.file.read(self.position, min(SLICE_BYTES, self._end - self.position))
        header = self._header(chunk, 0)
        if header.size_bytes > len(chunk):
            whole = BatchAt(self.position, header)
            if crc_of(self.file, whole) != header.crc:
                raise self._damage("the CRC does not match")
            chunk = read_batch(self.file, whole)
        view = memoryview(chunk)
        at = 0
        while True:
            stop = at + header.size_bytes
            if crc32c(view[at + ATTRIBUTES_AT : stop]) != header.crc:
                raise self._damage("the CRC does not match")
            # The offset is not covered by the CRC, and a wrong one would let later records of its keys go.
            if not self._least <= header.base_offset <= header.last_offset < self._end_offset:
                raise self._damage(f"offset {header.base_offset} outside of {self._least}..{self._end_offset - 1}")
            self._least = header.next_offset
            self.position += header.size_bytes
            yield header, view[at:stop]
            at = stop
            if at + HEADER_BYTES > len(chunk):
                return
            header = self._header(chunk, at)
            if at + header.size_bytes > len(chunk):
                return

    def _header(self, chunk: bytes, at: int) -> BatchHeader:
        if at + HEADER_BYTES > len(chunk):
            raise self._damage(f"{len(chunk) - at} bytes are too few for a batch")
        header = BatchHeader(*HEADER.unpack_from(chunk, at))
        reason = fault_of(header, self._end - self.position)
        if reason is not None:
            raise self._damage(reason)
        return header

    def _damage(self, reason: str) -> DamagedBatch:
        return DamagedBatch(self.file.path, self.position, reason)


def _seal(cleaned: Segment) -> int:
    cleaned.seal()
    return 0


def _max_timestamp(batch: Buffer) -> int:
    """The latest timestamp of its records; none for an empty batch, so that a search by time skips it."""
    if batch[RECORD_COUNT_AT:HEADER_BYTES] == bytes(4):
        return -1
    return int.from_bytes(batch[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8], "big", signed=True)
