"""Opening a partition's folder: loading its log, and recovering it after an unclean stop.

Owns the start of a log (rules 86-89, S22). After a clean stop the segments are taken as they are, and only missing or
impossible indexes are made anew. Otherwise every batch from the segment that holds the recovery point on is read and
its CRC checked; the first torn or wrong batch ends the log there. The indexes, the epochs and the producers of these
batches are rebuilt on the way.

Hostile files never crash it: unknown names are skipped, numbers are checked before they are used, and no more than
`scan.CHUNK_BYTES` of a segment is in memory at once.

A start opens thousands of logs, so indexes are open only while they are used: a log that is loaded has one open file
for each segment. If a load fails, none of its files stays open.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from tanist.log.checkpoints import LEADER_EPOCH_CHECKPOINT, CheckpointError, decode_epochs
from tanist.log.config import LogConfig
from tanist.log.crash_cleanup import tidy
from tanist.log.epochs import EpochEntry, LeaderEpochCache
from tanist.log.indexes import CorruptIndexError
from tanist.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    offset_file,
    offset_of,
)
from tanist.log.producer_replay import note_at, replay_producers
from tanist.log.producer_snapshots import SnapshotFiles
from tanist.log.producers import ProducerStates
from tanist.log.scan import (
    BatchAt,
    DamagedBatch,
    UnsupportedFormatError,
    is_legacy_message,
    verified_batches,
)
from tanist.log.segment import Segment
from tanist.ports import Disk, File, FileRange
from tanist.wire.batch import BatchHeader

Rescue = Callable[[int, tuple[FileRange, ...]], None]
"""Called before recovery cuts records off, with their first offset and their bytes. An `OSError` from it ends the
opening.
"""


class LoadingCancelled(Exception):
    """The node stops: nobody waits for the log any more."""


def _never() -> bool:
    return False


@dataclass(slots=True)
class RecoveryProgress:
    """Of one opening after the other in a thread. The loop reads it meanwhile."""

    segments_left: int = 0
    """Of the log that is being recovered."""
    is_cancelled: Callable[[], bool] = _never
    """Asked before each segment."""


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """The findings of an opening, for the operator and the tests."""

    segments_scanned: int = 0
    bytes_cut: int = 0
    cut_at_offset: int | None = None
    """The log end offset after the cut; None when nothing was cut."""
    reasons: tuple[str, ...] = ()
    """Each fault that was found."""
    began_at: int | None = None
    """The log's start at the last stop, which was clean, if it begins later now: segments are gone."""


@dataclass(slots=True)
class LoadedLog:
    """The parts from which a `Log` is made."""

    segments: list[Segment]
    epochs: LeaderEpochCache
    producers: ProducerStates
    snapshots: SnapshotFiles
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    report: RecoveryReport
    deleted: list[str] = field(default_factory=list)
    """Files of dropped segments, renamed, to be removed after `file.delete.delay.ms`."""
    released: list[File] = field(default_factory=list)


def new_log(disk: Disk, directory: str, config: LogConfig, now_ms: int) -> LoadedLog:
    """The parts of a log in a folder that was made just now: there is nothing to look for."""
    segment = Segment(disk, directory, 0, config, now_ms)
    snapshots = SnapshotFiles(disk, directory, ())
    return LoadedLog([segment], LeaderEpochCache(), ProducerStates(), snapshots, 0, 0, 0, RecoveryReport())


class LogLoader:
    """One opening of one folder."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        now_ms: int,
        *,
        recovery_point: int,
        log_start_offset: int,
        clean: bool,
        rescue: Rescue | None = None,
        progress: RecoveryProgress | None = None,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._config = config
        self._now_ms = now_ms
        self._recovery_point = recovery_point
        self._log_start_offset = log_start_offset
        self._clean = clean
        self._rescue = rescue
        self._progress = RecoveryProgress() if progress is None else progress
        self._reasons: list[str] = []
        self._deleted: list[str] = []
        self._released: list[File] = []
        self._segments: list[Segment] = []
        self._scanned = 0
        self._scanned_from: int | None = None
        self._bytes_cut = 0
        self._cut = False
        self._next_offset = -1
        """The offset after the last batch that was read; -1 before the first."""
        self._epochs = LeaderEpochCache()
        self._epochs_read: tuple[EpochEntry, ...] | None = None
        """As the checkpoint has them, if it can be read."""
        self._producers = ProducerStates()

    def load(self) -> LoadedLog:
        try:
            return self._load()
        except BaseException:
            for segment in self._segments:
                self._released += segment.release()
            for file in dict.fromkeys(self._released):  # one that failed while it was dropped is there twice
                file.close()
            raise
        finally:
            self._progress.segments_left = 0

    def _load(self) -> LoadedLog:
        names = tidy(self._disk, self._directory, self._reasons)
        bases = sorted(base for name in names if (base := offset_of(name, LOG_SUFFIX)) is not None)
        for base in bases:
            self._segments.append(self._segment(base, names))
        epochs_known = self._read_epochs(names)
        self._snapshots = SnapshotFiles(self._disk, self._directory, names)
        self._snapshots.remove_strays(bases)

        first_scan = self._first_to_scan(names) if epochs_known else 0
        if first_scan < len(self._segments):
            self._scan_from(first_scan)
        end = self._resume_last()
        if self._scanned == 0:
            try:
                self._load_producers(end, len(self._segments))
            except DamagedBatch as damage:
                self._scan_damaged(damage)
                end = self._resume_last()
        if end < self._log_start_offset:
            end = self._start_over()
        start = max(self._log_start_offset, self._segments[0].base_offset)
        began_at = self._missing_from(start)
        self._epochs.truncate_from_end(end)
        if start == end:
            self._keep_epoch_of_deleted(end)
        self._epochs.truncate_from_start(start)
        if self._epochs.entries == self._epochs_read:
            self._epochs.dirty = False  # read again from the batches, and the same
        self._finish_producers(start, end)
        for segment in self._segments:
            segment.park()
        return LoadedLog(
            self._segments,
            self._epochs,
            self._producers,
            self._snapshots,
            start,
            end,
            self._durable_below(end),
            RecoveryReport(self._scanned, self._bytes_cut, end if self._cut else None, tuple(self._reasons), began_at),
            self._deleted,
            self._released,
        )

    def _durable_below(self, end: int) -> int:
        """The initial recovery point. Segments that were read and indexed again are not synced yet."""
        point = end if self._clean else min(self._recovery_point, end)
        return point if self._scanned_from is None else min(point, self._scanned_from)

    # -- the folder

    def _segment(self, base_offset: int, names: set[str]) -> Segment:
        return Segment(self._disk, self._directory, base_offset, self._config, self._now_ms, names)

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def _read_epochs(self, names: set[str]) -> bool:
        """Load the epoch checkpoint; False when all of the log must be read to know them."""
        if LEADER_EPOCH_CHECKPOINT not in names:
            if any(segment.size for segment in self._segments):
                self._reasons.append(f"{LEADER_EPOCH_CHECKPOINT} is missing")
                return False
            return True
        path = self._path(LEADER_EPOCH_CHECKPOINT)
        data = self._disk.read_file(path)
        if not data and not self._clean and any(segment.size for segment in self._segments):
            # A loss of power may empty a file that was replaced without a sync (KAFKA-16541, KAFKA-15312). The epochs
            # that began below the recovery point are in the batches only, then.
            self._reasons.append(f"{LEADER_EPOCH_CHECKPOINT} is empty")
            return False
        try:
            self._epochs = LeaderEpochCache(decode_epochs(data, path))
            self._epochs_read = self._epochs.entries
        except CheckpointError as error:
            self._reasons.append(str(error))
            return False
        return True

    def _missing_from(self, start: int) -> int | None:
        """Where the log began, if its first segments are gone: a clean stop leaves no leader epoch below its start."""
        if not self._clean or not self._epochs_read or self._epochs_read[0].start_offset >= start:
            return None
        return self._epochs_read[0].start_offset

    def _keep_epoch_of_deleted(self, end: int) -> None:
        """All records were deleted: the epoch of the last one begins at the log's end, and only the checkpoint has it.

        Without it the leader could not tell whether its log agrees (rule 113), and an unclean recovery would take the
        log for the shortest of all. Apache Kafka forgets it.
        """
        if not self._epochs.entries and self._epochs_read and end > 0:
            epoch = LeaderEpochCache(self._epochs_read).epoch_at(end)
            if epoch >= 0:
                self._epochs.assign(epoch, end)

    # -- which segments to read

    def _first_to_scan(self, names: set[str]) -> int:
        """Index of the first segment whose batches must be read; the number of segments when there is none."""
        first = len(self._segments)
        if not self._clean and self._segments:
            bases = [segment.base_offset for segment in self._segments]
            first = max(0, bisect_right(bases, self._recovery_point) - 1)
        for index, segment in enumerate(self._segments[:first]):
            reason = self._index_fault(segment, names)
            segment.park()
            if reason is not None:
                self._reasons.append(reason)
                return index
        return first

    def _index_fault(self, segment: Segment, names: set[str]) -> str | None:
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            if offset_file(segment.base_offset, suffix) not in names and segment.size:
                return f"{offset_file(segment.base_offset, suffix)} is missing"
        try:
            for _ in segment.txn_index.transactions():
                pass
        except CorruptIndexError as error:
            return str(error)
        return None

    # -- reading batches

    def _scan_from(self, first: int) -> None:
        """Read, check and re-index the segments from the `first` on; cut the log where it is damaged."""
        try:
            self._load_producers(self._segments[first].base_offset, first)
        except DamagedBatch as earlier:
            self._scan_damaged(earlier)
            return
        start = self._segments[first].base_offset
        self._scanned_from = start if self._scanned_from is None else min(start, self._scanned_from)
        self._epochs.truncate_from_end(start)
        self._snapshots.doubt_above(start)
        self._next_offset = -1
        index = first
        while index < len(self._segments):
            self._progress.segments_left = len(self._segments) - index
            if self._progress.is_cancelled():
                raise LoadingCancelled
            segment = self._segments[index]
            if self._is_hole(segment.base_offset):
                self._reasons.append(f"{segment.file.path}: offsets {self._next_offset} and on are missing before it")
                self._hand_out(index, 0)
                self._drop_from(index)
                break
            limit = self._segments[index + 1].base_offset if index + 1 < len(self._segments) else 2**63 - 1
            if segment.base_offset > max(self._snapshots.latest, self._segments[0].base_offset):
                self._snapshots.write(segment.base_offset, self._producers, sync=False)
            damage = self._scan(segment, limit)
            self._scanned += 1
            if damage is not None:
                cut = segment.size - damage.position
                self._hand_out(index, damage.position)
                self._reasons.append(f"{damage}: {cut} bytes cut")
                segment.cut_file(damage.position)
                self._disk.sync_now(segment.file)
                self._bytes_cut += cut
                self._cut = True
                self._drop_from(index if segment.size == 0 and self._is_hole(segment.base_offset) else index + 1)
            segment.park()
            index += 1

    def _is_hole(self, offset: int) -> bool:
        """Is a segment that begins at `offset` behind records that are missing, and were not durable: lost?

        The writes since the last sync reach the disk in any order, so a loss of power may keep the later ones. A new
        segment begins where the last ends, and a cleaned one ends where it did. Within a file nothing is lost between
        two sound batches: there a hole is compaction's, of this log or of the leader's that this replica has copied.
        Whether the topic is compacted does not count, nor is it known when a broker starts.
        """
        missing_from = max(self._next_offset, self._log_start_offset)
        return self._next_offset >= 0 and self._recovery_point <= missing_from < offset

    def _scan_damaged(self, damage: DamagedBatch) -> None:
        """A trusted segment is not whole: read it, and all behind it."""
        self._reasons.append(str(damage))
        paths = [segment.file.path for segment in self._segments]
        self._scan_from(paths.index(damage.path))

    def _scan(self, segment: Segment, limit: int) -> DamagedBatch | None:
        """Read one segment; the position of its damage, if it has any."""
        segment.reset_indexes()
        segment.txn_index.reset()
        least = segment.base_offset
        try:
            for position, header in verified_batches(segment.file, 0, segment.size):
                reason = self._order_fault(segment, header, least, limit)
                if reason is not None:
                    raise DamagedBatch(segment.file.path, position, reason)
                if header.leader_epoch > self._epochs.latest_epoch:
                    self._epochs.assign(header.leader_epoch, header.base_offset)
                segment.note(header.last_offset, header.max_timestamp, position, header.size_bytes)
                aborted = note_at(self._producers, segment.file, BatchAt(position, header))
                if aborted is not None:
                    segment.txn_index.append(aborted)
                least = self._next_offset = header.last_offset + 1
        except DamagedBatch as damage:
            if is_legacy_message(segment.file, damage.position):
                raise UnsupportedFormatError(
                    f"{segment.file.path} holds messages of a format before v2. Kafka 4 does not write those: let "
                    "Apache Kafka 3.x compact or expire them, or move the folder away."
                ) from None
            return damage
        if self._next_offset < 0:
            self._next_offset = segment.base_offset
        segment.seal()
        return None

    def _order_fault(self, segment: Segment, header: BatchHeader, least: int, limit: int) -> str | None:
        """Why a sound batch can't follow what was read before it."""
        if header.base_offset < least:
            return f"offset {header.base_offset} after {least - 1}"
        if header.last_offset >= limit or not segment.offset_index.fits(header.last_offset):
            return f"offset {header.last_offset} is not this segment's"
        if 0 <= header.leader_epoch < self._epochs.latest_epoch:
            # A loss of power may undo a truncation and leave what was written since: two histories in one file.
            return f"leader epoch {header.leader_epoch} after {self._epochs.latest_epoch}"
        return None

    def _hand_out(self, index: int, position: int) -> None:
        """Hand out everything from `position` of a segment on before it is cut off."""
        if self._rescue is None:
            return
        ranges = []
        for segment in self._segments[index:]:
            if segment.size > position:
                ranges.append(FileRange(segment.file, position, segment.size - position))
            position = 0
        self._rescue(max(self._next_offset, 0), tuple(ranges))

    def _drop_from(self, index: int) -> None:
        """End the log here. A replica fetches the rest again from its leader."""
        for segment in reversed(self._segments[index:]):
            self._bytes_cut += segment.size
            self._cut = True
            self._reasons.append(f"{segment.file.path}: {segment.size} bytes after the damage dropped")
            self._snapshots.remove(segment.base_offset)
            self._released += segment.release()
            self._deleted += segment.mark_deleted()
        del self._segments[index:]

    def _resume_last(self) -> int:
        """Take up the last segment as the active one: the log end offset."""
        if not self._segments:
            self._segments.append(self._segment(self._log_start_offset, set()))
        last = self._segments[-1]
        try:
            return last.resume()
        except DamagedBatch as damage:
            # A clean stop, and yet not whole.
            self._scan_damaged(damage)
            return self._segments[-1].resume()

    def _start_over(self) -> int:
        """The log start offset lies beyond the log: none of it is visible any more."""
        self._reasons.append(f"log start offset {self._log_start_offset} is beyond the log: it begins anew there")
        for segment in reversed(self._segments):
            self._released += segment.release()
            self._deleted += segment.mark_deleted()
        self._snapshots.remove_above(-1)
        self._producers.clear()
        self._epochs.clear()
        self._epochs_read = None
        self._segments = [self._segment(self._log_start_offset, set())]
        return self._segments[0].resume()

    # -- producers

    def _load_producers(self, up_to: int, count: int) -> None:
        """Producers as of `up_to`, from the latest snapshot and the batches after it of the first `count` segments."""
        self._snapshots.doubt_above(up_to)
        offset, snapshot, complaints = self._snapshots.load_latest(self._log_start_offset, up_to)
        self._reasons += complaints
        self._producers.load(*snapshot)
        replay_producers(self._producers, self._segments[:count], max(offset, self._log_start_offset), up_to)

    def _finish_producers(self, start: int, end: int) -> None:
        self._snapshots.doubt_above(end)
        if end > max(self._snapshots.latest, start):
            self._snapshots.write(end, self._producers, sync=False)
        self._snapshots.remove_doubted()
