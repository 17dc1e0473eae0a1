"""The checkpoints of a log directory: the recovery points, log starts and high watermarks of its logs, in three files.

Owns what the files say, and may still say after a loss of power: none of them ever claims too much. A point that has to
go down goes down on disk before the log is cut or made anew.

An `OSError` is reported to `failed` and raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tanist.events.storage import CheckpointDamaged
from tanist.log.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    CheckpointError,
    decode_offsets,
    encode_offsets,
)
from tanist.log.log import Log
from tanist.ports import Disk
from tanist.wire.ids import TopicPartition

Offsets = Mapping[tuple[str, int], int]
Logs = Mapping[tuple[str, int], Log]


class DirectoryCheckpoints:
    """The three files of the directory `path`. Call `read` first."""

    def __init__(self, disk: Disk, path: str, logs: Logs, futures: Logs, failed: Callable[[OSError], None]) -> None:
        self._disk = disk
        self._path = path
        self._logs = logs
        self._futures = futures
        self._failed = failed
        self.late_failure: Callable[[OSError], None] | None = None
        """Called in a later turn if a file could not be written that was to be written off the loop."""
        self._being_written: set[str] = set()
        """Files that are written off the loop at present."""
        self._written: dict[str, tuple[bytes, bool]] = {}
        """The content of each file, as far as this run has written it, and whether that was synced."""
        self._high_watermarks: dict[tuple[str, int], int] = {}
        self._high_watermarks_written: Offsets | None = None
        """As this run has written them; None before the first time."""
        self._high_watermarks_found: dict[tuple[str, int], int] = {}
        """The highest that a start may find after a loss of power: files since the last that was synced."""
        self.log_starts: Offsets = {}
        self.recovery_points: Offsets = {}
        """As they are on the disk, both, or will be in a moment."""

    @property
    def _all(self) -> dict[tuple[str, int], Log]:
        return {**self._futures, **self._logs}

    # -- at the start

    def read(self) -> tuple[bool, list[CheckpointDamaged]]:
        """Read the files: whether there are recovery points, and which files are damaged.

        To go on without costs time or, for log starts, shows deleted records again; and no log is known to be lost.
        """
        damaged: list[CheckpointDamaged] = []
        listed = self._read_offsets(RECOVERY_POINT_CHECKPOINT, damaged)
        self.recovery_points = listed or {}
        self.log_starts = self._read_offsets(LOG_START_CHECKPOINT, damaged) or {}
        self._high_watermarks = self._read_offsets(HIGH_WATERMARK_CHECKPOINT, damaged) or {}
        self._high_watermarks_found = dict(self._high_watermarks)
        return listed is not None, damaged

    def _read_offsets(self, name: str, damaged: list[CheckpointDamaged]) -> dict[tuple[str, int], int] | None:
        path = f"{self._path}/{name}"
        try:
            return decode_offsets(self._disk.read_file(path), path)
        except FileNotFoundError:
            return None
        except CheckpointError as error:
            damaged.append(CheckpointDamaged(str(error)))
            return None

    def reached(self) -> dict[tuple[str, int], int]:
        """The highest offset that the files have of each log."""
        reached: dict[tuple[str, int], int] = {}
        for offsets in (self.recovery_points, self.log_starts, self._high_watermarks):
            for key, offset in offsets.items():
                reached[key] = max(offset, reached.get(key, 0))
        return reached

    def lower_to_logs(self) -> None:
        """All logs are open, and none has been appended to: where one ends earlier, or was repaired, go down."""
        if any(self.recovery_points.get(key, 0) > log.recovery_point for key, log in self._all.items()):
            # What was repaired is not durable yet: until it is, a crash must find it to be looked at again.
            self.write_recovery_points(sync=True)
        self._lower_high_watermarks({key: log.log_end_offset for key, log in self._all.items()})

    def high_watermark(self, topic: str, partition: int) -> int:
        """As of the last checkpoint, 0 when there is none."""
        return self._high_watermarks.get((topic, partition), 0)

    # -- as logs change

    def forget(self, key: tuple[str, int]) -> None:
        """The log is gone: its high watermark is not another's of that name."""
        self._high_watermarks.pop(key, None)

    def before_cut(self, log: Log, end_offset: int) -> None:
        """Before a log is cut to `end_offset`, with its recovery point lowered."""
        self.lower(log.topic_partition, end_offset, log.recovery_point)

    def lower(self, key: TopicPartition, end_offset: int, recovery_point: int) -> None:
        """Before a log is appended to that ends here, and of which what follows the recovery point is not durable."""
        self._lower_high_watermarks({key: end_offset})
        self._lower_log_start(key, end_offset)
        if self.recovery_points.get(key, 0) > recovery_point:
            self.write_recovery_points(sync=True)

    def _lower_high_watermarks(self, ends: Offsets) -> None:
        """An older, higher high watermark, bounded by the log's end alone, would count the new records as committed at
        the next start (rule 117).
        """
        lowered = {key: end for key, end in ends.items() if self._high_watermarks_found.get(key, 0) > end}
        if lowered:
            known = self._high_watermarks
            lowered = {key: min(end, known[key]) for key, end in lowered.items() if key in known}
            self._set_high_watermarks({**known, **lowered})

    def _lower_log_start(self, key: TopicPartition, end_offset: int) -> None:
        """An older, higher log start would take the new records at the next start, as if they had been deleted on
        request.
        """
        if self.log_starts.get(key, 0) > end_offset:
            starts = {**self.log_starts, key: end_offset}
            starts = {each: start for each, start in starts.items() if start}
            self._write(LOG_START_CHECKPOINT, starts, sync=True)
            self.log_starts = starts

    def replace(self, key: tuple[str, int], high_watermark: int) -> None:
        """Another log has taken this one's place: with the file, the name of its folder becomes durable."""
        self.write_log_starts()
        self._written.pop(HIGH_WATERMARK_CHECKPOINT, None)
        self._set_high_watermarks({**self._high_watermarks, key: high_watermark})

    def _set_high_watermarks(self, offsets: dict[tuple[str, int], int]) -> None:
        self._high_watermarks = offsets
        self._write(HIGH_WATERMARK_CHECKPOINT, offsets, sync=True)
        self._high_watermarks_written = dict(offsets)
        self._high_watermarks_found = dict(offsets)

    # -- every few seconds, and at the stop

    def write(self, high_watermarks: Offsets) -> None:
        """All three, as they are to be written every few seconds.

        A rename may wait for the file system longer than clients should: off the loop, where nothing has to be durable
        before what follows. What is still being written from the last time stays as it is until the next.
        """
        if RECOVERY_POINT_CHECKPOINT not in self._being_written:
            self.write_recovery_points(later=True)
        if HIGH_WATERMARK_CHECKPOINT not in self._being_written:
            self.write_high_watermarks(high_watermarks, later=True)
        self.write_log_starts()

    def write_recovery_points(self, *, sync: bool = False, later: bool = False) -> None:
        """From where an unclean start has to read.

        An older file costs time only, so it is not synced for its own sake. One that has a higher point for a log of
        the same name, since deleted, would have the next start take unsynced records for synced ones.
        """
        points = {key: log.recovery_point for key, log in self._all.items()}
        sync = sync or _lowers(self.recovery_points, points)
        if sync or points != self.recovery_points or RECOVERY_POINT_CHECKPOINT not in self._written:
            self._write(RECOVERY_POINT_CHECKPOINT, points, sync=sync, later=later)
            self.recovery_points = points

    def write_high_watermarks(self, high_watermarks: Offsets, *, later: bool = False) -> None:
        """As given by the replicas; of logs that have none given, what was known stays."""
        known = {key: offset for key, offset in self._high_watermarks.items() if key in self._logs}
        known.update(high_watermarks)
        self._high_watermarks = known
        if known == self._high_watermarks_written:
            return
        # After this run has been killed no one knows of an older file with the high watermark of a deleted log.
        sync = _lowers(self._high_watermarks_found, known)
        self._write(HIGH_WATERMARK_CHECKPOINT, known, sync=sync, later=later)
        self._high_watermarks_written = dict(known)
        if sync:
            self._high_watermarks_found = dict(known)
        else:
            self._high_watermarks_found.update(known)

    def write_log_starts(self) -> None:
        """For logs whose start is within a segment: records deleted on request must not come back."""
        starts = {
            key: log.log_start_offset
            for key, log in self._all.items()
            if log.log_start_offset > log.first_segment_offset
        }
        self._write(LOG_START_CHECKPOINT, starts, sync=True)
        self.log_starts = starts

    def _write(self, name: str, offsets: Offsets, *, sync: bool, later: bool = False) -> None:
        """`later`: off the loop, unless it must be durable. It counts as written, for it may be at any time."""
        data = encode_offsets(offsets)
        written, synced = self._written.get(name, (None, False))
        if written == data and (synced or not sync):
            return
        path = f"{self._path}/{name}"
        if later and not sync:
            self._being_written.add(name)
            self._disk.write_file_later(path, data, partial(self._written_late, name))
        else:
            try:
                self._disk.write_file(path, data, sync=sync)
            except OSError as error:
                self._failed(error)
                raise
        self._written[name] = (data, sync)

    def _written_late(self, name: str, error: OSError | None) -> None:
        self._being_written.discard(name)
        if error is not None:
            self._failed(error)
            if self.late_failure is not None:
                self.late_failure(error)


def _lowers(before: Offsets, after: Offsets) -> bool:
    return any(after.get(key, 0) < offset for key, offset in before.items())
