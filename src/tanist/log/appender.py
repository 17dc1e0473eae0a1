"""The end of a partition's log, where batches are appended.

Owns both kinds of append: the leader's gives a client's batch its offsets, the follower's takes the leader's batches
byte for byte. It also owns the roll to the next segment, and the updates of the epoch cache and the producers.

An append is visible at once and written later: a leader's batches are queued as views of the request's memory until
`write_pending`. After a failed write the log is `failed`: its end is ahead of its file, so it refuses appends and
reads until it is opened anew. So it is after any exception halfway through a change (`torn`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from struct import Struct
from typing import Final, NoReturn, Protocol

from tanist.events.storage import BatchRepeated, RecordsAppended, SegmentRolled
from tanist.events.stream import Events
from tanist.invariants import InvariantError
from tanist.log.append import (
    AppendResult,
    Examined,
    examine,
    examine_fetched,
    recompress,
    refuse,
)
from tanist.log.checkpoints import LEADER_EPOCH_CHECKPOINT, encode_epochs
from tanist.log.config import LogConfig
from tanist.log.markers import note_batch
from tanist.log.producer_checks import check_producers
from tanist.log.producers import ProducerStates
from tanist.log.recovery import LoadedLog
from tanist.log.scan import DamagedBatch
from tanist.log.segment import Segment
from tanist.log.segments import Segments
from tanist.log.torn import as_failure
from tanist.ports import NEVER_LARGE, Disk
from tanist.wire.batch import (
    ATTRIBUTES_AT,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    MAX_TIMESTAMP_AT,
    write_crc,
)
from tanist.wire.compression import Compression
from tanist.wire.crc import crc32c
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicPartition

_PREFIX: Final = Struct(">qii")
"""Base offset, length, partition leader epoch: they lie before the CRC, so that they can be patched without touching
it.
"""
_MAX_TIMESTAMP: Final = Struct(">q")
_ATTRIBUTES: Final = Struct(">h")
_PLAIN_ATTRIBUTES_MAX: Final = int(max(Compression))
"""Attributes up to this hold the compression and nothing else."""
_PENDING_MAX: Final = 1024
"""The bound of the queue: so many views are written in the middle of a turn."""
_SEQUENCE_MASK: Final = 2**31 - 1
_RELATIVE_MAX: Final = 2**31 - 1

_PLAIN: Final = Struct(">qi4xbIhiqqqhii")
"""`HEADER` without the leader epoch."""

_unpack_plain = _PLAIN.unpack_from
_pack_prefix = _PREFIX.pack_into


class LogOffsets(Protocol):
    """The offsets between which a log lies: the log has them, and appends move its end.

    They are plain attributes of the log because each fetch and each append reads them several times.
    """

    log_start_offset: int
    log_end_offset: int
    """The offset of the next record; queued batches count."""


@dataclass(slots=True)
class _LastOffsets:
    """Those of a log that is closed."""

    log_start_offset: int
    log_end_offset: int


class Appender:
    """The appending part of a `Log`, with the write state that appends change.

    `Log` opens, reads, truncates and flushes. The two share the segments, the epochs and the producers.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
        offsets: LogOffsets,
        events: Events,
    ) -> None:
        self._events = events
        self._offsets = offsets
        self._disk = disk
        self.directory = directory
        self.topic_partition = topic_partition
        self.epochs = loaded.epochs
        self.set_producers(loaded.producers)
        self.failed: OSError | None = None
        self.snapshots = loaded.snapshots
        self.segments = Segments(disk, directory, config, loaded.segments, loaded.recovery_point)
        self.segments.adopt_deleted(loaded.deleted, loaded.released)
        self.epoch = -1
        """The epoch of the last append, known to be in the cache."""
        self.epochs_durable = False
        """Whether the epoch checkpoint on disk is synced."""
        self.queued_from_bytes = NEVER_LARGE
        """So many bytes of fetched batches, or more, are left for who looks at the queue at the end of the turn."""
        self.now_ms = 0
        self.set_config(config)

    def set_producers(self, producers: ProducerStates) -> None:
        self.producers = producers
        self._entries = producers.entries

    def close(self) -> None:
        """Close the files. The log and this hold each other until then: open files are counted as long as they live."""
        self.segments.close()
        self._offsets = _LastOffsets(self._offsets.log_start_offset, self._offsets.log_end_offset)

    def set_config(self, config: LogConfig) -> None:
        """Use another configuration from the next append on."""
        self.config = self.segments.config = config
        self._plain = not (config.compacts or config.log_append_time or config.compression is not None)
        self._batch_bytes_max = min(config.max_message_bytes, config.segment_bytes)
        self._segment_bytes = config.segment_bytes
        self._before_ms = config.message_timestamp_before_max_ms
        self._after_ms = config.message_timestamp_after_max_ms
        self._set_roll_time()

    def _set_roll_time(self) -> None:
        """`segment.ms`, or `max.compaction.lag.ms`, less a jitter: segments differ in it, so not all logs roll at once.

        The jitter is a hash of the segment's name, so that it is the same in every run.
        """
        longest_ms = self.config.segment_ms_max
        jitter_ms = min(self.config.segment_jitter_ms, longest_ms)
        if jitter_ms:
            name = f"{self.topic_partition}/{self.segments.active.base_offset}"
            jitter_ms = crc32c(name.encode()) % jitter_ms
        self.roll_ms = longest_ms - jitter_ms

    # -- appending

    def append_as_leader(
        self,
        batches: memoryview,
        leader_epoch: int,
        now_ms: int,
        wall_ms: int | None = None,
        *,
        internal: bool = False,
    ) -> AppendResult:
        """Append a producer's batch: its offsets and the leader epoch are written into the view.

        `internal` is for batches of the quorum and the coordinators: several at once, control batches, any
        timestamps. The view must stay as it is until `write_pending`. A refused append changes nothing. Timestamps
        are not checked without `wall_ms`.
        """
        first_offset = -1
        if wall_ms is not None and not internal:
            first_offset = self.append_plain(batches, leader_epoch, now_ms, wall_ms)
        if first_offset >= 0:
            return AppendResult(0, first_offset, self._offsets.log_end_offset - 1)
        return self._append_examined(batches, leader_epoch, now_ms, wall_ms, internal=internal)

    def append_plain(self, batch: memoryview, leader_epoch: int, now_ms: int, wall_ms: int) -> int:
        """The fast path of `append_as_leader`: one sound batch with a recent timestamp.

        Its first offset, if it was appended. -1 for anything else: nothing has changed then, and `append_as_leader`
        appends or refuses it.
        """
        size = len(batch)
        if size < HEADER_BYTES or not self._plain or self.failed is not None:
            return -1
        (
            base_offset, length, magic, crc, attributes, delta, base_timestamp, max_timestamp,
            producer_id, producer_epoch, sequence, count,
        ) = _unpack_plain(batch)  # fmt: skip
        if (
            base_offset
            or length + LENGTH_OVERHEAD != size
            or magic != MAGIC
            or size > self._batch_bytes_max
            or not 0 <= attributes <= _PLAIN_ATTRIBUTES_MAX
            or count < 1
            or count != delta + 1
            or not wall_ms - self._before_ms <= base_timestamp <= max_timestamp <= wall_ms + self._after_ms
            or crc32c(batch[ATTRIBUTES_AT:]) != crc
        ):
            return -1
        entry = None
        if producer_id >= 0:
            entry = self._entries.get(producer_id)
            if (
                entry is None
                or entry.epoch != producer_epoch
                or entry.next_sequence != sequence
                or entry.transaction_first_offset >= 0
            ):
                return -1

        first_offset: int = self._offsets.log_end_offset
        last_offset: int = first_offset + delta
        segment = self.segments.active
        try:
            first_timestamp = segment.rolling_timestamp
            if (
                first_timestamp < 0
                or max_timestamp - first_timestamp > self.roll_ms
                or segment.size + size > self._segment_bytes
                or segment.index_full
                or last_offset - segment.base_offset > _RELATIVE_MAX
            ) and self._must_roll(segment, size, last_offset, max_timestamp, now_ms):
                segment = self.roll_for(first_offset, last_offset, now_ms)
            if leader_epoch != self.epoch:
                self._enter_epoch(leader_epoch, first_offset)
            _pack_prefix(batch, 0, first_offset, length, leader_epoch)
            segment.append(first_offset, last_offset, max_timestamp, size)
            pending = segment.pending
            pending.append(batch)
            if len(pending) >= _PENDING_MAX:
                segment.write()
            if entry is not None:
                entry.add(producer_epoch, (sequence + delta) & _SEQUENCE_MASK, last_offset, delta, max_timestamp)
        except Exception as error:
            self.failed = as_failure(error)
            return -1
        self._offsets.log_end_offset = last_offset + 1
        if self._events.fine:
            self._report_records(leader_epoch, first_offset, last_offset + 1)
        return first_offset

    def _append_examined(
        self, batches: memoryview, leader_epoch: int, now_ms: int, wall_ms: int | None, *, internal: bool
    ) -> AppendResult:
        """The general path: any number of batches, every check with its own error."""
        if self.failed is not None:
            return refuse(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory}: {self.failed}")
        found = examine(batches, self.config, wall_ms, internal=internal)
        if isinstance(found, AppendResult):
            return found
        refused = check_producers(self.producers, batches, found, self.config, internal=internal)
        if refused is not None:
            if refused.duplicate and self._events.fine:
                self._events.emit(BatchRepeated(str(self.topic_partition), refused.first_offset, refused.last_offset))
            return refused
        stored = recompress(batches, found, self.config)
        if isinstance(stored, AppendResult):
            return stored
        batches, found = stored
        append_time_ms = -1
        if self.config.log_append_time:
            if wall_ms is None:
                raise ValueError(f"{self.topic_partition} has timestamps of the append: wall_ms is needed")
            append_time_ms = wall_ms
            found = [_stamp(batches, each, wall_ms) for each in found]
        try:
            return self._append_found(batches, found, leader_epoch, now_ms, append_time_ms)
        except Exception as error:
            return self._fail(as_failure(error))

    def _append_found(
        self, batches: memoryview, examined: list[Examined], leader_epoch: int, now_ms: int, append_time_ms: int
    ) -> AppendResult:
        first_offset = self._offsets.log_end_offset
        records = sum(header.last_offset_delta + 1 for _, header in examined)
        max_timestamp = max(header.max_timestamp for _, header in examined)
        segment = self.segments.active
        if self._must_roll(segment, len(batches), first_offset + records - 1, max_timestamp, now_ms):
            segment = self.roll_for(first_offset, first_offset + records - 1, now_ms)
        if leader_epoch != self.epoch:
            self._enter_epoch(leader_epoch, first_offset)
        for start, header in examined:
            base_offset = self._offsets.log_end_offset
            last_offset = base_offset + header.last_offset_delta
            _pack_prefix(batches, start, base_offset, header.size_bytes - LENGTH_OVERHEAD, leader_epoch)
            segment.append(base_offset, last_offset, header.max_timestamp, header.size_bytes)
            self._offsets.log_end_offset = last_offset + 1
            self._note_producer(batches, Examined(start, header), base_offset, segment)
        segment.pending.append(batches)
        if self._events.fine:
            self._report_records(leader_epoch, first_offset, self._offsets.log_end_offset)
        return AppendResult(0, first_offset, self._offsets.log_end_offset - 1, append_time_ms)

    def _fail(self, error: OSError) -> AppendResult:
        """The disk failed in the middle of an append; the next `write_pending` raises the error."""
        self.failed = error
        return refuse(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory}: {error}")

    def append_as_follower(self, batches: memoryview, leader_epoch: int, now_ms: int | None = None) -> AppendResult:
        """Append the batches of the leader of `leader_epoch` as they are, and write them.

        A batch that is cut off at the end is skipped.

        From `queued_from_bytes` on they are only queued, and the view must stay as it is until `write_pending`.
        An error (and nothing appended) if a CRC does not match, an offset is not beyond the log's end, or an epoch is
        below the log's last or above the leader's; `OSError` if the disk fails.
        """
        if self.failed is not None:
            raise self.failed
        found = examine_fetched(batches, self.epochs.latest_epoch, leader_epoch)
        if isinstance(found, AppendResult):
            return found
        if not found:
            return AppendResult()
        first, end = found[0].header, self._offsets.log_end_offset
        # A replica that begins at the leader's log start offset, within a batch, must take the whole batch.
        within = self._empty and first.base_offset < end <= first.last_offset
        expected = first.base_offset if within else end
        for _, header in found:
            if header.base_offset < expected:
                return refuse(
                    ErrorCode.OFFSET_OUT_OF_RANGE, f"the leader sent offset {header.base_offset}, expected {expected}"
                )
            expected = header.last_offset + 1
        with self.changing():
            if within:
                self._restart_at(first.base_offset, self.time(now_ms))
            self._append_fetched(batches, found, self.time(now_ms))
        if self._events.fine:
            for epoch, same in groupby(found, key=lambda each: each.header.leader_epoch):
                headers = [each.header for each in same]
                self._report_records(epoch, headers[0].base_offset, headers[-1].last_offset + 1)
        return AppendResult(0, first.base_offset, self._offsets.log_end_offset - 1)

    def _append_fetched(self, batches: memoryview, examined: list[Examined], now_ms: int) -> None:
        segment = self.segments.active
        queued = 0
        for batch in examined:
            start, header = batch
            last_offset = header.last_offset
            if self._must_roll(segment, header.size_bytes, last_offset, header.max_timestamp, now_ms):
                if start > queued:
                    segment.pending.append(batches[queued:start])
                segment = self.roll_for(header.base_offset, last_offset, now_ms)
                queued = start
            if header.leader_epoch != self.epoch and header.leader_epoch >= 0:
                self._enter_epoch(header.leader_epoch, header.base_offset)
            segment.append(header.base_offset, last_offset, header.max_timestamp, header.size_bytes)
            self._note_producer(batches, batch, header.base_offset, segment)
            self._offsets.log_end_offset = last_offset + 1
        end = examined[-1].start + examined[-1].header.size_bytes
        segment.pending.append(batches[queued:end])
        if segment.unwritten_bytes < self.queued_from_bytes:
            self.write_pending()

    def _note_producer(self, batches: memoryview, batch: Examined, base_offset: int, segment: Segment) -> None:
        start, header = batch
        aborted = note_batch(self.producers, header, base_offset, lambda: batches[start : start + header.size_bytes])
        if aborted is not None:
            segment.txn_index.append(aborted)

    def _report_records(self, epoch: int, first_offset: int, end_offset: int) -> None:
        self._events.emit(RecordsAppended(str(self.topic_partition), epoch, first_offset, end_offset))

    def _enter_epoch(self, epoch: int, start_offset: int) -> None:
        if epoch < self.epochs.latest_epoch:
            # A leader's batch of an older epoch was refused before: this one is our own.
            raise InvariantError(
                "the epochs of appended batches ascend", epoch=epoch, latest_epoch=self.epochs.latest_epoch
            )
        self.assign_epoch(epoch, start_offset)
        self.epoch = epoch

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Leader epoch `epoch` begins at `start_offset`. Of a log that never had a record, the first one writes it."""
        with self.changing():
            if self.epochs.assign(epoch, start_offset) and self._offsets.log_end_offset:
                self.write_epochs()

    def write_epochs(self, *, sync: bool = False) -> None:
        """Write `leader-epoch-checkpoint`, durably only when asked.

        Kafka syncs each assignment; a thousand of them at a change of leaders would stop this one thread for seconds.
        Recovery reads the batches from the recovery point on again and so restores the epochs that began there. The
        file only has to be durable before the recovery point passes them: `unflushed_files` sees to that.
        """
        if self.epochs.dirty or sync:
            self._disk.write_file(
                f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}", encode_epochs(self.epochs.entries), sync=sync
            )
            self.epochs_durable = sync
            self.epochs.dirty = False

    # -- writing

    def write_pending(self) -> None:
        """Write the queue with one `File.write`, before the memory of the queued views is used again."""
        if self.failed is not None:
            raise self.failed
        segment = self.segments.active
        if segment.pending:
            try:
                segment.write()
            except Exception as error:
                self._give_up(error)
        if self.epochs.dirty and self._offsets.log_end_offset:
            with self.changing():
                self.write_epochs()

    def write_pending_later(self, done: Callable[[OSError | None], None]) -> None:
        """As `write_pending`, off the loop; then call `done` in a later turn. `write_pending` ends it at once.

        The queued views must stay as they are until `done`. For one large queue: see `Disk.large_write_bytes`.
        """
        if self.failed is not None:
            raise self.failed

        def written(error: OSError | None) -> None:
            if error is not None and self.failed is None:
                self.failed = error
            done(error)

        with self.changing():
            if self.epochs.dirty and self._offsets.log_end_offset:
                self.write_epochs()
            self.segments.active.write_later(written)

    def _must_roll(self, segment: Segment, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Must a batch go to a new segment: for size, age, a full index, or an offset that is too far away?"""
        if segment.size == 0:
            return last_offset - segment.base_offset > _RELATIVE_MAX
        first = segment.rolling_timestamp
        return (
            segment.size + size > self._segment_bytes
            or (max_timestamp - first if first >= 0 else now_ms - segment.created_ms) > self.roll_ms
            or segment.index_full
            or last_offset - segment.base_offset > _RELATIVE_MAX
        )

    def roll_for(self, first_offset: int, last_offset: int, now_ms: int) -> Segment:
        """Roll to a segment for these offsets. It begins where the last one ends, even if compaction left a hole.

        So a start can tell records lost between two segments from records that were never there. A header that claims
        offsets beyond those is damaged, and fails the log: DamagedBatch.
        """
        active = self.segments.active
        end_offset = active.next_offset
        if end_offset > first_offset:
            with self.changing():
                raise DamagedBatch(active.file.path, active.size, f"it claims to end at offset {end_offset}")
        return self.roll(end_offset if last_offset - end_offset <= _RELATIVE_MAX else first_offset, now_ms)

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """Roll to a new segment, and keep the producers as of its start beside it."""
        with self.changing():
            segment = self.segments.roll(base_offset, now_ms)
            if base_offset > self.snapshots.latest:
                self.snapshots.write(base_offset, self.producers, sync=False)
        self._set_roll_time()
        if self._events.fine:
            self._events.emit(SegmentRolled(str(self.topic_partition), base_offset))
        return segment

    def time(self, now_ms: int | None) -> int:
        """The time given, else that of the last call that gave one."""
        if now_ms is not None:
            self.now_ms = now_ms
        return self.now_ms

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Any exception halfway through a change fails the log, as its disk does: nothing may be built on the rest."""
        try:
            yield
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> NoReturn:
        failed = self.failed = as_failure(error)
        if failed is error:
            raise failed
        raise failed from error

    @property
    def _empty(self) -> bool:
        return self._offsets.log_end_offset == self._offsets.log_start_offset

    def _restart_at(self, base_offset: int, now_ms: int) -> None:
        """An empty log restarts at a lower offset, the start of a batch. Its visible range stays the same."""
        self.segments.replace_from(0, base_offset, now_ms)
        self.write_epochs(sync=True)
        self._offsets.log_end_offset = base_offset


def _stamp(batches: memoryview, batch: Examined, wall_ms: int) -> Examined:
    """Give a batch its append time, and the CRC that goes with it."""
    start, header = batch
    attributes = header.attributes | LOG_APPEND_TIME
    _ATTRIBUTES.pack_into(batches, start + ATTRIBUTES_AT, attributes)
    _MAX_TIMESTAMP.pack_into(batches, start + MAX_TIMESTAMP_AT, wall_ms)
    write_crc(batches, start, header.size_bytes)
    return Examined(start, header._replace(attributes=attributes, max_timestamp=wall_ms))
