"""One partition's log: segments, epochs and producers of one `NAME-N/` folder.

Owns the order of records on this replica: the offset of each, and that batches are appended (`Appender`), cut and
dropped whole. It must not know of high watermarks, ISRs or requests: a reader gives the bound, and an appender has
checked its right to append.

No lock, task or clock: `now_ms` is monotonic time, `wall_ms` the time of day, with which record timestamps are
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tanist.events.storage import LogStartMoved, RecordsCut
from tanist.events.stream import NOBODY, Events
from tanist.invariants import InvariantError
from tanist.log import timestamps
from tanist.log.append import AppendResult
from tanist.log.appender import Appender
from tanist.log.checkpoints import PARTITION_METADATA, encode_partition_metadata
from tanist.log.compaction import Cleanable, find_cleanable, first_dirty_offset
from tanist.log.config import LogConfig
from tanist.log.producer_replay import replay_producers
from tanist.log.recovery import (
    LoadedLog,
    LogLoader,
    RecoveryProgress,
    RecoveryReport,
    Rescue,
    new_log,
)
from tanist.log.retention import expired_segments, held_up
from tanist.log.segment import BatchPosition, Segment
from tanist.log.segments import LogSlice
from tanist.log.timestamps import TimestampedOffset
from tanist.log.topic_id import InconsistentTopicId, read_or_write_topic_id
from tanist.log.transaction_index import AbortedTransaction
from tanist.ports import Disk, File, FileRange
from tanist.wire.ids import ZERO_UUID, TopicPartition

__all__ = [
    "AbortedTransaction",
    "AppendResult",
    "InconsistentTopicId",
    "Log",
    "LogSlice",
    "OffsetOutOfRange",
    "RecoveryReport",
    "TimestampedOffset",
    "TruncatedTail",
]


UPKEEP_MS_MAX: Final = 60_000
"""A log that nobody appends to is looked at once in such a time."""


class OffsetOutOfRange(Exception):
    """The offset is not in [log start, log end]."""


@dataclass(frozen=True, slots=True)
class TruncatedTail:
    """A part of a log that is about to be truncated, handed out before it is gone."""

    topic: str
    partition: int
    from_offset: int
    to_offset: int
    """The log end offset before the cut."""
    ranges: tuple[FileRange, ...]
    """The bytes in order of offset, readable only during the call."""


class Log:
    """A partition's log. Make one with `Log.open`."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: UUID,
        config: LogConfig,
        loaded: LoadedLog,
        events: Events,
    ) -> None:
        self._disk = disk
        self._events = events
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        """The offset of the next record; queued batches count."""
        self._appender = Appender(disk, directory, topic_partition, config, loaded, self, events)
        self.append_plain = self._appender.append_plain
        """`Appender.append_plain`, without a call in between: one is made for every produce."""
        self.write_pending = self._appender.write_pending
        """Write the queue with one `File.write`, before the memory of the queued views is used again."""
        self.write_pending_later = self._appender.write_pending_later
        self._segments = self._appender.segments
        self._snapshots = self._appender.snapshots
        self.epochs = self._appender.epochs
        self.producers = self._appender.producers
        self.recovery: RecoveryReport = loaded.report
        self.flushed_offset = self.recovery_point = loaded.recovery_point
        self.before_cut: Callable[[Log, int], None] | None = None
        """Called before a cut with the offset at which the log will end, with the recovery point lowered: higher
        checkpoints must go down first. Of the recovery point because it would keep recovery from reading the records
        that replace those that were cut, of the high watermark because they would count as committed.
        """
        self.topic_id_durable = True
        """Whether `partition.metadata` is synced. It has to be before the recovery point leaves 0."""
        self._last_flush_ms = 0
        self._cut_since_cleaned: int | None = None
        self._held_up_offset = -1
        """Base offset of the last segment that `newly_held_up` has named."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        now_ms: int,
        *,
        recovery_point: int,
        clean: bool,
        log_start_offset: int = 0,
        rescue: Callable[[UUID], Rescue] | None = None,
        progress: RecoveryProgress | None = None,
        new: bool = False,
        events: Events = NOBODY,
    ) -> Log:
        """Open the folder `directory`, or make it. `InconsistentTopicId` if it is of another topic.

        A `topic_id` of zero takes what the folder says. `clean`: the broker that wrote it has stopped in good order.
        `new`: the folder was made just now, and `topic_id_durable` will be false: a thousand new logs that are synced
        one by one would stop this one thread for seconds. `rescue` is called with the topic's id, and its result with
        the bytes that recovery cuts off.
        """
        if new:
            disk.write_file(f"{directory}/{PARTITION_METADATA}", encode_partition_metadata(topic_id), sync=False)
            log = cls(
                disk,
                directory,
                TopicPartition(topic, partition),
                topic_id,
                config,
                new_log(disk, directory, config, now_ms),
                events,
            )
            log.topic_id_durable = False
            log._appender.now_ms = log._last_flush_ms = now_ms
            return log
        disk.make_directory(directory)
        topic_id = read_or_write_topic_id(disk, f"{directory}/{PARTITION_METADATA}", topic_id)
        loaded = LogLoader(
            disk,
            directory,
            config,
            now_ms,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean=clean,
            rescue=None if rescue is None else rescue(topic_id),
            progress=progress,
        ).load()
        log = cls(disk, directory, TopicPartition(topic, partition), topic_id, config, loaded, events)
        # A folder that a crash has left before its first flush may have its id in the page cache alone.
        log.topic_id_durable = clean or recovery_point > 0
        log._appender.now_ms = log._last_flush_ms = now_ms
        try:
            log._appender.write_epochs(sync=log.recovery.cut_at_offset is not None)
        except OSError:
            log.abandon()  # with too many open files each one counts
            raise
        return log

    def succeed(self, predecessor: Log) -> None:
        """Take the place of a log of the same records, in another directory, which is not used any more (KIP-113).

        What it knows beyond its records goes on: epochs without any, producers, what the cleaner has yet to see.
        """
        if (self.log_start_offset, self.log_end_offset) != (predecessor.log_start_offset, predecessor.log_end_offset):
            raise InvariantError("a log has the records of the one that it succeeds", new=self, old=predecessor)
        self.epochs.become(predecessor.epochs)
        self._appender.write_epochs(sync=True)
        self.producers = predecessor.producers
        self._appender.set_producers(predecessor.producers)
        self._cut_since_cleaned = predecessor._cut_since_cleaned

    def assign_topic_id(self, topic_id: UUID) -> None:
        """The log is of this topic: written down if it was not known, `InconsistentTopicId` if it is of another."""
        known = self.topic_id
        self.topic_id = read_or_write_topic_id(self._disk, f"{self.directory}/{PARTITION_METADATA}", topic_id)
        if known == ZERO_UUID:
            self.topic_id_durable = True

    def write_topic_id(self) -> None:
        """Make `partition.metadata` durable. May be called off the loop."""
        path = f"{self.directory}/{PARTITION_METADATA}"
        try:
            self._disk.make_durable(path)
        except FileNotFoundError:
            self._disk.write_file(path, encode_partition_metadata(self.topic_id))

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"

    # -- properties

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        return self.topic_partition.partition

    @property
    def failed(self) -> OSError | None:
        """The disk's error, after which the log refuses appends and reads."""
        return self._appender.failed

    @property
    def config(self) -> LogConfig:
        return self._appender.config

    def set_config(self, config: LogConfig) -> None:
        """Use another configuration from the next append on."""
        self._appender.set_config(config)

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def pending_bytes(self) -> int:
        """The length of the queue, without what is being written off the loop."""
        return self._segments.active.unwritten_bytes

    @property
    def writes_late(self) -> bool:
        """Whether a part of the queue is being written off the loop."""
        return self._segments.active.writes_late

    @property
    def written_end_offset(self) -> int:
        """The log's end without what is queued."""
        return self._segments.active.written_end(self.log_end_offset)

    @property
    def latest_epoch(self) -> int:
        """The latest leader epoch, -1 when none is known."""
        return self.epochs.latest_epoch

    @property
    def last_written_epoch(self) -> int:
        """The leader epoch of the last record; a leader's epoch in which nothing was written does not count.

        -1 where there never was a record. Where all have been deleted, the epoch that the end of the log belongs to.
        """
        if self.log_end_offset > self.log_start_offset:
            return self.epochs.epoch_at(self.log_end_offset - 1)
        if self.log_end_offset == 0:
            return -1
        earliest = self.epochs.earliest
        return -1 if earliest is None else earliest.epoch

    @property
    def first_segment_offset(self) -> int:
        return self._segments.first_base

    # -- appending, by the appender

    def append_as_leader(
        self,
        batches: memoryview,
        leader_epoch: int,
        now_ms: int,
        wall_ms: int | None = None,
        *,
        internal: bool = False,
    ) -> AppendResult:
        return self._appender.append_as_leader(batches, leader_epoch, now_ms, wall_ms, internal=internal)

    def queue_large(self, from_bytes: int) -> None:
        """Fetched batches of so many bytes wait for `write_pending`, as the batches of producers do."""
        self._appender.queued_from_bytes = from_bytes

    def append_as_follower(self, batches: memoryview, leader_epoch: int, now_ms: int | None = None) -> AppendResult:
        return self._appender.append_as_follower(batches, leader_epoch, now_ms)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Leader epoch `epoch` begins at `start_offset`."""
        self._appender.assign_epoch(epoch, start_offset)

    # -- reading

    def read(self, offset: int, max_bytes: int, upper_offset: int, at_least_one: bool = True) -> LogSlice | None:
        """Batches from the one that holds `offset` on, all of them wholly below `upper_offset`; None when there are
        none.

        At most `max_bytes`, but `at_least_one` batch however large it is; from one segment. `OffsetOutOfRange`
        outside of [log start, log end]; `DamagedBatch` where the file is broken.
        """
        appender = self._appender
        if appender.failed is not None:
            raise appender.failed
        end_offset = self.log_end_offset
        if not self.log_start_offset <= offset <= end_offset:
            raise OffsetOutOfRange(
                f"{self.topic_partition}: offset {offset} is not in {self.log_start_offset}..{end_offset}"
            )
        if upper_offset > end_offset:
            upper_offset = end_offset
        if offset >= upper_offset:
            return None
        try:
            return self._segments.read(offset, max_bytes, upper_offset, at_least_one)
        except OSError as error:
            appender.failed = error
            raise

    def bytes_available(self, offset: int, upper_offset: int) -> int:
        """About how many bytes a reader at `offset` could get; exact at the tail. For `fetch.min.bytes`."""
        return self._segments.bytes_between(max(offset, self.log_start_offset), min(upper_offset, self.log_end_offset))

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """The first record that is not earlier than `timestamp_ms`, looked up inside its batch."""
        self.write_pending()
        return timestamps.offset_for_timestamp(self._segments, timestamp_ms, self.log_start_offset)

    def max_timestamp(self) -> TimestampedOffset | None:
        """The first record that has the latest timestamp, -1 if none has one; None when there is no record."""
        self.write_pending()
        return timestamps.max_timestamp(self._segments, self.log_start_offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset up to which a `read_committed` consumer may read."""
        producers = self.producers
        if not producers.open_transactions and not producers.unreplicated:
            return high_watermark
        stable_offset = producers.last_stable_offset(high_watermark)
        if stable_offset > high_watermark:
            raise InvariantError(
                "the last stable offset is at most the high watermark",
                last_stable_offset=stable_offset,
                high_watermark=high_watermark,
            )
        return max(stable_offset, min(self.log_start_offset, high_watermark))

    def aborted_transactions(self, start_offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that have records in [start, upper)."""
        return self._segments.aborted_transactions(start_offset, upper_offset)

    def aborted_within(self, log_slice: LogSlice, start_offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that have records in a piece that was read from `start_offset` on.

        There may be some that begin a little after it.
        """
        return self._segments.aborted_within(log_slice, start_offset, upper_offset)

    # -- cutting and dropping

    def tail(self, offset: int) -> TruncatedTail | None:
        """The part that `truncate_to(offset)` would drop, as long as nothing is appended; None if it would drop
        nothing.
        """
        self.write_pending()
        offset = max(offset, self.log_start_offset)
        if offset >= self.log_end_offset:
            return None
        segments = self._segments
        index = segments.index_of(offset)
        segment = segments.at(index)
        place = segment.find(offset)
        ranges = segments.ranges_from(index, segment.size if place is None else place.position)
        begin = offset if place is None else min(offset, place.base_offset)
        return TruncatedTail(*self.topic_partition, begin, self.log_end_offset, ranges) if ranges else None

    def truncate_to(self, offset: int, now_ms: int | None = None) -> bool:
        """Drop `offset` and what follows, and the batch that it is in; True if anything was there to drop.

        Epochs and producers become what they were at the new end. Dropped records are gone durably on return: otherwise
        a loss of power could bring them back, among later records or into a log that was stopped cleanly.
        """
        if offset < 0:
            raise ValueError(f"{self.topic_partition} can't be truncated to {offset}")
        self.write_pending()
        self._appender.epoch = -1
        if offset >= self.log_end_offset:
            # An epoch may have begun at the end without a record: another leader's history has no such entry.
            with self._appender.changing():
                self.epochs.truncate_from_end(self.log_end_offset)
                self._appender.write_epochs()
            return False
        segments = self._segments
        if offset < segments.first_base:
            self.truncate_fully_and_start_at(offset, now_ms)
            return True
        index = segments.index_of(offset)
        segment = segments.at(index)
        place = segment.find(offset)
        end = offset if place is None else min(offset, place.base_offset)
        self._events.emit(RecordsCut(str(self.topic_partition), end, self.log_end_offset))
        with self._appender.changing():
            self._cut(index, place, end, self._appender.time(now_ms))
        return True

    def _cut(self, index: int, place: BatchPosition | None, end: int, now_ms: int) -> None:
        """Keep the segments up to the one at `index`, and its batches before `place`.

        Where a reader was given what goes, the log goes on in another file (`Segment.was_given_more`).
        """
        segments = self._segments
        segment = segments.at(index)
        self._lower_recovery_point(end, segment.base_offset)
        self._snapshots.remove_above(end)
        if place is not None and place.position == 0 and segment.given_to:
            dropped = segments.replace_from(index, segment.base_offset, now_ms)
        else:
            dropped = segments.drop_from(index + 1)
            if place is not None:
                segment.truncate_to(place, now_ms)
                self._disk.sync_now(segment.file)
            segment.resume()
        self.log_end_offset = end
        self.log_start_offset = min(self.log_start_offset, end)
        self.epochs.truncate_from_end(end)
        self._appender.write_epochs(sync=dropped > 0)
        self._reload_producers()
        self._check_points()
        if segments.active.was_given_more:
            self._appender.roll_for(end, end, now_ms)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int | None = None) -> None:
        """Drop everything; the next record has `offset`."""
        self.write_pending()
        if self.size_bytes:
            self._events.emit(RecordsCut(str(self.topic_partition), self.log_start_offset, self.log_end_offset))
        with self._appender.changing():
            self.log_end_offset = self.log_start_offset = offset
            self._appender.epoch = -1
            self.epochs.clear()
            self.producers.clear()
            self._lower_recovery_point(offset, offset)
            self._snapshots.remove_above(-1)
            self._segments.replace_from(0, offset, self._appender.time(now_ms))
            self._appender.write_epochs(sync=True)

    def _lower_recovery_point(self, end: int, base_offset: int) -> None:
        """Records written from `end` on are not durable yet, nor are the indexes of the segment that is cut."""
        self.flushed_offset = min(self.flushed_offset, end)
        if self._cut_since_cleaned is None or base_offset < self._cut_since_cleaned:
            self._cut_since_cleaned = base_offset
        self.recovery_point = min(self.recovery_point, max(base_offset, end - 1))
        if self.before_cut is not None:
            self.before_cut(self, end)

    def _reload_producers(self) -> None:
        """Producers as of the log's end, from the latest snapshot before it and the batches since."""
        end = self.log_end_offset
        if not self.producers.entries:
            return
        offset, snapshot, _ = self._snapshots.load_latest(self.log_start_offset, end)
        self.producers.load(*snapshot)
        replay_producers(self.producers, list(self._segments), max(offset, self.log_start_offset), end)

    def advance_log_start_offset(self, offset: int) -> bool:
        """Records before `offset` are no longer to be seen; whole segments of them go with the next clean-up."""
        if offset > self.log_end_offset:
            raise OffsetOutOfRange(f"{self.topic_partition} ends at {self.log_end_offset}, it can't start at {offset}")
        if offset <= self.log_start_offset:
            return False
        if self._events.fine:
            self._events.emit(LogStartMoved(str(self.topic_partition), self.log_start_offset, offset))
        with self._appender.changing():
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            self._appender.write_epochs()
            self.producers.forget_below(offset)
        return True

    def delete_old_segments(self, now_ms: int, wall_ms: int, high_watermark: int) -> list[str]:
        """Drop the oldest segments that retention by time or size, or the log start offset, no longer asks for.

        Never one that reaches the high watermark. The paths, also those of segments that a truncation has dropped,
        are to be removed after `file.delete.delay.ms`.
        """
        self.write_pending()
        self._segments.close_retired()
        count = expired_segments(
            self._segments, self.config, self.log_start_offset, self.log_end_offset, high_watermark, now_ms, wall_ms
        )
        if count:
            with self._appender.changing():
                self._drop_oldest(count, now_ms)
        return self.drain_deleted()

    def newly_held_up(self, wall_ms: int, high_watermark: int) -> tuple[int, int] | None:
        """The oldest segment, if retention does not delete it for its latest timestamp, which lies in the future: its
        base offset and that timestamp. Of each segment once.
        """
        segment = held_up(self._segments, self.config, self.log_end_offset, high_watermark, wall_ms)
        if segment is None or segment.base_offset == self._held_up_offset:
            return None
        self._held_up_offset = segment.base_offset
        return segment.base_offset, segment.latest_timestamp().timestamp

    def _drop_oldest(self, count: int, now_ms: int) -> None:
        if count == len(self._segments):
            self._appender.roll(self.log_end_offset, now_ms)
        for base_offset in self._segments.first_bases(count):
            self._snapshots.remove(base_offset)
        self._segments.drop_first(count)
        self.advance_log_start_offset(self._segments.first_base)
        # With the checkpoint the folder becomes durable: of what is gone nothing comes back, and not in part.
        self._appender.write_epochs(sync=True)

    def drain_deleted(self) -> list[str]:
        """Paths of dropped files, each given once, to be removed after `file.delete.delay.ms`."""
        return self._segments.drain_deleted()

    def roll_if_due(self, now_ms: int, wall_ms: int | None = None) -> bool:
        """Roll a segment that has been active for `segment.ms`, and forget idle producers: call it now and then.

        Kafka rolls only when the next batch comes, so that an idle topic's last segment never leaves.
        """
        self._appender.now_ms = now_ms
        self._segments.close_retired()
        if wall_ms is not None:
            self.expire_producers(wall_ms, now_ms)
        active = self._segments.active
        if self.failed is not None or active.size == 0 or now_ms - active.created_ms <= self._appender.roll_ms:
            return False
        self._appender.roll(active.next_offset, now_ms)
        return True

    def next_upkeep_ms(self, now_ms: int) -> int:
        """By when, unless it is appended to, the log is to be asked again whether it must roll or be flushed.

        `now_ms` if something is under way; at most a minute from now, for retention, cleaning and producers' ends.
        """
        active = self._segments.active
        if self._segments.has_retired or active.base_offset > self.recovery_point:
            return now_ms
        due_ms = now_ms + UPKEEP_MS_MAX
        if active.size:
            due_ms = min(due_ms, active.created_ms + self._appender.roll_ms + 1)
        if self.log_end_offset > self.flushed_offset:
            due_ms = min(due_ms, self._last_flush_ms + self.config.flush_ms)
        return due_ms

    def expire_producers(self, wall_ms: int, now_ms: int) -> int:
        """Forget idle producers; how many."""
        return self.producers.expire(wall_ms, now_ms, self.config.producer_id_expiration_ms)

    # -- cleaning

    def cleanable(self, checkpoint: int | None, high_watermark: int, wall_ms: int) -> Cleanable:
        """The part that could be compacted now, if cleaning has come to `checkpoint`."""
        if checkpoint is not None and self._cut_since_cleaned is not None:
            # Records that replaced truncated ones are not clean, though they lie below.
            checkpoint = min(checkpoint, self._cut_since_cleaned)
        return find_cleanable(
            self._segments,
            self.config,
            first_dirty_offset(checkpoint, self.log_start_offset, self.log_end_offset),
            self.last_stable_offset(high_watermark),
            self.recovery_point,
            wall_ms,
        )

    def cleaned_to(self, end_offset: int) -> None:
        """A cleaning has ended, up to this offset."""
        if self._cut_since_cleaned is not None and self._cut_since_cleaned <= end_offset:
            self._cut_since_cleaned = None

    def sealed_segments(self, end_offset: int) -> list[Segment]:
        """The segments that begin below an offset, but for the active one."""
        segments = self._segments
        return [each for each in segments if each.base_offset < end_offset and each is not segments.active]

    def holds(self, segments: Sequence[Segment]) -> bool:
        """Are these still neighbours in the log, and sealed?"""
        return self._segments.holds(segments)

    def segment_end(self, segment: Segment) -> int:
        """Where a segment of this log ends: the next one's base."""
        segments = self._segments
        return segments.end_offset(segments.index_of(segment.base_offset), self.log_end_offset)

    def swap_in(self, cleaned: Segment, replaced: Sequence[Segment], now_ms: int) -> bool:
        """Let a cleaned segment, durable by now, take the place of those it was made of, durably.

        False, and nothing has changed, if they are not there any more: retention or a truncation was faster.
        """
        if self.failed is not None or not self._segments.holds(replaced):
            return False
        with self._appender.changing():
            self._segments.replace(replaced, cleaned, now_ms)
            for each in replaced[1:]:
                self._snapshots.remove(each.base_offset)
            # With the checkpoint the folder becomes durable: of what was replaced nothing comes back, and not in part.
            self._appender.write_epochs(sync=True)
        return True

    # -- durability

    @property
    def flush_messages_due(self) -> bool:
        """Has `flush.messages` been reached since the last flush? With 1, every append is to be durable first."""
        return self.log_end_offset - self.flushed_offset >= self._appender.config.flush_messages

    def flush_due(self, now_ms: int) -> int | None:
        """The offset up to which it is time to flush; None if it is not.

        By `flush.messages` and `flush.ms` all that was appended. Else the segments that have rolled, but not the active
        one, as in Kafka: while a file is synced, ext4 lets writes to it wait for the blocks that it allocates.
        """
        if self.log_end_offset > self.flushed_offset and (
            self.flush_messages_due or now_ms - self._last_flush_ms >= self.config.flush_ms
        ):
            return self.log_end_offset
        base_offset = self._segments.active.base_offset
        return base_offset if base_offset > self.recovery_point else None

    def unflushed_files(self, end_offset: int | None = None) -> list[File]:
        """The files to sync so that all that has been appended is durable; with an `end_offset`, so that all is that
        segments which begin below it have.

        Then call `mark_flushed` with that offset, or with the end as of now.
        """
        self.write_pending()
        if not self.topic_id_durable and self.topic_id != ZERO_UUID:
            self.write_topic_id()
            self.topic_id_durable = True
        if self.log_end_offset and not self._appender.epochs_durable:
            self._appender.write_epochs(sync=True)
        return self._segments.unsynced_files(
            self.flushed_offset, self.log_end_offset if end_offset is None else end_offset
        )

    def mark_flushed(self, offset: int, now_ms: int | None = None) -> None:
        """A sync that began when the log ended at `offset` is done. Only what the files confirm counts."""
        now_ms = self._appender.time(now_ms)
        if offset >= self.log_end_offset or offset > self._segments.active.base_offset:
            self._last_flush_ms = now_ms  # else segments that have rolled were flushed, and `flush.ms` goes on
        flushed = self._segments.confirmed(self.flushed_offset, min(offset, self.log_end_offset))
        self.flushed_offset = max(self.flushed_offset, flushed)
        if self._appender.epochs_durable:
            point = self._segments.durable_before(self.flushed_offset, self.log_end_offset)
            self.recovery_point = max(self.recovery_point, point)
        self._check_points()

    def _check_points(self) -> None:
        durable = max(self.flushed_offset, self.log_start_offset)
        if not self.recovery_point <= durable <= self.log_end_offset:
            raise InvariantError(
                "what need not be recovered has been flushed or deleted, and lies within the log",
                recovery_point=self.recovery_point,
                flushed_offset=self.flushed_offset,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
            )

    def close(self) -> None:
        """Make everything durable, and close the files: after this a start need not read the log."""
        if self.failed is not None:
            self.abandon()
            return
        self._segments.seal()
        for file in self.unflushed_files():
            self._disk.sync_now(file)
        self.mark_flushed(self.log_end_offset)
        self.recovery_point = self.log_end_offset
        if self.log_end_offset > max(self._snapshots.latest, self.log_start_offset):
            self._snapshots.write(self.log_end_offset, self.producers, sync=True)
        self._appender.close()

    def abandon(self) -> None:
        """Close the files as they are: the disk has failed, or the folder is about to go."""
        self._appender.close()
