"""The metadata log on a disk: `log.Log` in the folder `__cluster_metadata-0`, and its snapshots (rules 146-148).

Owns the snapshots' files and the retention of both: the log is cut at its start only where a kept snapshot begins, and
there is always one kept. A snapshot is durable before the records that it replaces are dropped. `rules` decides whether
records may be cut at the end.

A start reads and checks the whole log, as Kafka's does: it is small, and no other part of the node could repair it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tanist.log.config import DAY_MS, LogConfig
from tanist.log.log import Log
from tanist.log.names import LOG_SUFFIX, offset_file
from tanist.ports import Chunk, Disk, File, FileRange
from tanist.quorum.storage.batches import check_batches, decode_values, read_headers, voter_records
from tanist.quorum.storage.raft_log import CorruptBatch, MetadataBatch, RaftLog, VoterMessage
from tanist.quorum.storage.snapshots import (
    DELETED_SUFFIX,
    PARTIAL_SUFFIX,
    SnapshotWriting,
    batches_in,
    check_snapshot,
    decode_snapshot,
    encode_snapshot,
    file_name,
    last_contained_log_timestamp,
    parse_name,
    snapshot_voters,
)
from tanist.quorum.voters import LogEnd, SnapshotId
from tanist.wire.ids import METADATA_TOPIC, METADATA_TOPIC_ID

__all__ = ["MetadataLog", "MetadataLogConfig", "RaftLog"]

FOLDER = f"{METADATA_TOPIC}-0"

_READ_BYTES = 1024 * 1024


class InconsistentSnapshots(Exception):
    """The log begins after offset 0 and no snapshot covers the missing records: metadata is lost on this disk."""


@dataclass(frozen=True, slots=True)
class MetadataLogConfig:
    """The `metadata.*` properties that the log obeys, with Kafka's defaults."""

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * DAY_MS
    retention_bytes: int = 100 * 1024**2
    retention_ms: int = 7 * DAY_MS
    """-1, for either: no limit."""
    batch_bytes_max: int = 64 * 1024**2

    def log_config(self) -> LogConfig:
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=self.segment_ms,
            retention_bytes=-1,
            retention_ms=-1,
            max_message_bytes=self.batch_bytes_max,
        )


class MetadataLog:
    """A `RaftLog` on a `Disk`. Make one with `MetadataLog.open`."""

    def __init__(self, disk: Disk, log: Log, config: MetadataLogConfig, snapshots: dict[SnapshotId, int]) -> None:
        self._disk = disk
        self._log = log
        self._config = config
        self._sizes = snapshots
        """Size of each whole snapshot."""
        self._open: dict[SnapshotId, File] = {}
        """Those that are being sent."""
        self._download: tuple[SnapshotId, File] | None = None
        self._condemned: list[str] = []
        self._condemned_files: list[File] = []
        """Files that the next cleaning closes and removes; until then they may be read."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        log_directory: str,
        config: MetadataLogConfig | None = None,
        now_ms: int = 0,
    ) -> MetadataLog:
        """Open, or make, `__cluster_metadata-0` in `log_directory`."""
        config = config or MetadataLogConfig()
        folder = f"{log_directory}/{FOLDER}"
        log = Log.open(
            disk,
            folder,
            METADATA_TOPIC,
            0,
            METADATA_TOPIC_ID,
            config.log_config(),
            now_ms,
            recovery_point=0,
            clean=False,
        )
        opened = cls(disk, log, config, {})
        opened._cut_at_gap()
        opened._recover_snapshots()
        opened._sync_head()
        return opened

    def _cut_at_gap(self) -> None:
        """End the log where a batch is missing. A crash can lose the end of one segment and spare the next one."""
        offset = self.start_offset
        while (found := self._log.read(offset, _READ_BYTES, self.end_offset)) is not None:
            view = memoryview(found.chunk.file.read(found.chunk.offset, found.chunk.length))
            before = offset
            for _, header in read_headers(view):
                if header.base_offset <= offset:
                    offset = header.next_offset
            if offset == before:
                break
        self._log.truncate_to(offset)

    def _recover_snapshots(self) -> None:
        """Forget what is partial, deleted or before the log; finish an installation that a crash has interrupted."""
        unneeded: list[str] = []
        for name in self._disk.list(self._log.directory):
            snapshot = parse_name(name)
            if snapshot is None:
                continue
            path = f"{self._log.directory}/{name}"
            if snapshot.whole and snapshot.snapshot_id.end_offset >= self.start_offset:
                file = self._disk.open(path, create=False)
                self._sizes[snapshot.snapshot_id] = file.size
                file.close()
            else:
                unneeded.append(path)
        latest = self.latest_snapshot_id
        if latest is not None and LogEnd(latest.epoch, latest.end_offset) > self._last_record():
            self._start_at(latest)
        if self.start_offset > 0 and self.latest_snapshot_id is None:
            raise InconsistentSnapshots(f"the log begins at {self.start_offset}, and there is no snapshot")
        for path in unneeded:
            self._disk.remove(path)

    # -- the log

    @property
    def log(self) -> Log:
        return self._log

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def last_epoch(self) -> int:
        epoch = self._log.latest_epoch
        if epoch >= 0:
            return epoch
        latest = self.latest_snapshot_id
        return 0 if latest is None else latest.epoch

    def _last_record(self) -> LogEnd:
        return LogEnd(max(0, self._log.latest_epoch), self.end_offset)

    def end_of_epoch(self, epoch: int) -> LogEnd:
        found, offset = self._log.epochs.end_offset_for(epoch, self.end_offset)
        if found < 0:
            return LogEnd(self.last_epoch, self.end_offset)
        earliest = self.earliest_snapshot_id
        if earliest is not None and offset == earliest.end_offset and found == epoch:
            # The epoch is older than the log: only the snapshot at its start is left of it.
            return LogEnd(earliest.epoch, earliest.end_offset)
        return LogEnd(found, offset)

    def begin_epoch(self, epoch: int) -> None:
        self._log.assign_epoch(epoch, self.end_offset)

    def append(self, batches: memoryview, epoch: int) -> None:
        length = check_batches(batches, self.end_offset, self.last_epoch, epoch)
        if length == 0:
            return
        # As a follower even for the leader's own batches: they have their offsets and their epoch.
        result = self._log.append_as_follower(batches[:length], epoch)
        if result.error:
            raise CorruptBatch(f"the log refused it: {result.message}")

    def truncate_to(self, offset: int) -> None:
        self._log.truncate_to(offset)

    def read(self, offset: int, max_bytes: int) -> Chunk | None:
        if offset >= self.end_offset:
            return None
        found = self._log.read(offset, max_bytes, self.end_offset)
        return None if found is None else found.chunk

    def read_batches(self, from_offset: int, to_offset: int) -> Iterator[MetadataBatch]:
        offset = from_offset
        while offset < to_offset:
            found = self._log.read(offset, _READ_BYTES, to_offset)
            if found is None:
                return
            view = memoryview(found.chunk.file.read(found.chunk.offset, found.chunk.length))
            before = offset
            for position, header in read_headers(view):
                if from_offset <= header.base_offset < to_offset:
                    yield decode_values(view[position : position + header.size_bytes], header)
                offset = header.next_offset
            if offset == before:
                raise CorruptBatch(f"no batch at offset {offset}")

    def voter_records(self, from_offset: int) -> Iterator[tuple[int, VoterMessage]]:
        offset = from_offset
        while (found := self._log.read(offset, _READ_BYTES, self.end_offset)) is not None:
            view = memoryview(found.chunk.file.read(found.chunk.offset, found.chunk.length))
            before = offset
            for _, header in read_headers(view):
                offset = max(offset, header.next_offset)
            yield from ((at, message) for at, message in voter_records(view) if at >= from_offset)
            if offset == before:
                raise CorruptBatch(f"no batch at offset {offset}")

    # -- durability

    def unflushed_files(self) -> list[File]:
        """The files that a `SyncLog` syncs; then call `mark_flushed` with the log end as of this call."""
        return self._log.unflushed_files()

    def mark_flushed(self, offset: int, now_ms: int | None = None) -> None:
        self._log.mark_flushed(offset, now_ms)

    def close(self) -> None:
        self.abandon_download()
        for file in (*self._open.values(), *self._condemned_files):
            file.close()
        self._log.close()

    # -- snapshots

    @property
    def earliest_snapshot_id(self) -> SnapshotId | None:
        return min(self._sizes, default=None)

    @property
    def latest_snapshot_id(self) -> SnapshotId | None:
        return max(self._sizes, default=None)

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        return self._sizes.get(snapshot_id)

    def snapshot_chunk(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> Chunk:
        length = min(max_bytes, self._sizes[snapshot_id] - position)
        file = self._open.get(snapshot_id)
        if file is None:
            file = self._open[snapshot_id] = self._disk.open(self._path(snapshot_id), create=False)
        return FileRange(file, position, length)

    def create_snapshot(
        self,
        snapshot_id: SnapshotId,
        values: Iterable[bytes],
        *,
        wall_ms: int,
        last_contained_log_timestamp: int = 0,
        voters: Sequence[VoterMessage] = (),
    ) -> bool:
        """Write a snapshot of these framed values, durably; False if there is one. Blocks.

        Then `RaftNode.snapshot_created`, which checks and cleans.
        """
        writing = self.begin_snapshot(
            snapshot_id,
            values,
            wall_ms=wall_ms,
            last_contained_log_timestamp=last_contained_log_timestamp,
            voters=voters,
        )
        if writing is None:
            return False
        while writing.write_slice():
            pass
        self._disk.sync_now(writing.file)
        return self.finish_snapshot(writing)

    def begin_snapshot(
        self,
        snapshot_id: SnapshotId,
        values: Iterable[bytes],
        *,
        wall_ms: int,
        last_contained_log_timestamp: int = 0,
        voters: Sequence[VoterMessage] = (),
    ) -> SnapshotWriting | None:
        """A snapshot that is to be written in slices; None if there is one. `values` are taken as they are needed."""
        if snapshot_id in self._sizes:
            return None
        partial = self._path(snapshot_id, PARTIAL_SUFFIX)
        self._disk.remove(partial)
        batches = encode_snapshot(
            snapshot_id,
            values,
            wall_ms=wall_ms,
            last_contained_log_timestamp=last_contained_log_timestamp,
            voters=voters,
        )
        return SnapshotWriting(snapshot_id, self._disk.open(partial), batches)

    def finish_snapshot(self, writing: SnapshotWriting) -> bool:
        """Its file is whole and durable: it counts now. False, and it is gone, if the log begins later by now."""
        writing.file.close()
        if writing.snapshot_id.end_offset < self.start_offset:
            self._disk.remove(writing.file.path)
            return False
        self._name_whole(writing.snapshot_id, writing.size_bytes)
        return True

    def read_snapshot(self, snapshot_id: SnapshotId) -> Iterator[MetadataBatch]:
        """Its data batches. `CorruptBatch` if it is not whole; `KeyError` if there is no such snapshot."""
        return decode_snapshot(self._snapshot_batches(snapshot_id, self._sizes[snapshot_id]))

    def snapshot_voter_records(self, snapshot_id: SnapshotId) -> Sequence[VoterMessage]:
        return snapshot_voters(self._snapshot_batches(snapshot_id, self._sizes[snapshot_id]))

    def _snapshot_batches(self, snapshot_id: SnapshotId, size: int) -> Iterator[memoryview]:
        file = self._disk.open(self._path(snapshot_id), create=False)
        try:
            yield from batches_in(file, size)
        finally:
            file.close()

    def begin_download(self, snapshot_id: SnapshotId) -> None:
        self.abandon_download()
        path = self._path(snapshot_id, PARTIAL_SUFFIX)
        self._disk.remove(path)
        self._download = (snapshot_id, self._disk.open(path))

    def write_download(self, snapshot_id: SnapshotId, position: int, data: memoryview) -> None:
        self._partial(snapshot_id).write(position, [data])

    def finish_download(self, snapshot_id: SnapshotId) -> None:
        file = self._partial(snapshot_id)
        check_snapshot(batches_in(file, file.size))
        self._download = None
        self._freeze(snapshot_id, file, file.size)
        self._start_at(snapshot_id)

    def abandon_download(self) -> None:
        if self._download is not None:
            snapshot_id, file = self._download
            self._download = None
            file.close()
            self._disk.remove(self._path(snapshot_id, PARTIAL_SUFFIX))

    def _partial(self, snapshot_id: SnapshotId) -> File:
        if self._download is None or self._download[0] != snapshot_id:
            raise ValueError(f"no download of {snapshot_id} is under way")
        return self._download[1]

    def _freeze(self, snapshot_id: SnapshotId, file: File, size: int) -> None:
        self._disk.sync_now(file)
        file.close()
        self._name_whole(snapshot_id, size)

    def _name_whole(self, snapshot_id: SnapshotId, size: int) -> None:
        self._disk.rename(self._path(snapshot_id, PARTIAL_SUFFIX), self._path(snapshot_id))
        self._sizes[snapshot_id] = size

    def _start_at(self, snapshot_id: SnapshotId) -> None:
        """Rule 148: drop the old log."""
        self._log.truncate_fully_and_start_at(snapshot_id.end_offset)
        self._sync_head()
        self._condemn_before(snapshot_id)

    def _sync_head(self) -> None:
        """Make the first segment's name durable.

        A crash may take files that were never synced and spare later ones. Between segments that leaves a gap, where
        the log is cut; before the first it would leave a log without its beginning.
        """
        path = f"{self._log.directory}/{offset_file(self._log.first_segment_offset, LOG_SUFFIX)}"
        file = self._disk.open(path)
        self._disk.sync_now(file)
        file.close()

    def _path(self, snapshot_id: SnapshotId, suffix: str | None = None) -> str:
        name = file_name(snapshot_id) if suffix is None else file_name(snapshot_id, suffix)
        return f"{self._log.directory}/{name}"

    # -- retention

    def clean(self, now_ms: int, wall_ms: int) -> bool:
        """KIP-630: while there is another snapshot, drop the oldest if it is too old or all is too large.

        Removes the files that the last call dropped; so call it now and then (Kafka: every minute), not in a burst.
        """
        self._purge()
        self._log.roll_if_due(now_ms)
        cleaned = False
        ids = sorted(self._sizes)
        for oldest, following in pairwise(ids):
            if not self._is_overdue(oldest, wall_ms):
                break
            self._log.advance_log_start_offset(following.end_offset)
            self._condemned += self._log.delete_old_segments(now_ms, wall_ms, self.start_offset)
            self._condemn_before(following)
            cleaned = True
        return cleaned

    def _purge(self) -> None:
        for file in self._condemned_files:
            file.close()
        for path in self._condemned:
            self._disk.remove(path)
        self._condemned_files.clear()
        self._condemned.clear()

    def _is_overdue(self, snapshot_id: SnapshotId, wall_ms: int) -> bool:
        size = self._log.size_bytes + sum(self._sizes.values())
        if 0 <= self._config.retention_bytes < size:
            return True
        if self._config.retention_ms < 0:
            return False
        first = next(self._snapshot_batches(snapshot_id, self._sizes[snapshot_id]))
        return wall_ms - last_contained_log_timestamp(first) > self._config.retention_ms

    def _condemn_before(self, snapshot_id: SnapshotId) -> None:
        for earlier in [other for other in self._sizes if other < snapshot_id]:
            del self._sizes[earlier]
            if earlier in self._open:
                self._condemned_files.append(self._open.pop(earlier))
            deleted = self._path(earlier, DELETED_SUFFIX)
            self._disk.rename(self._path(earlier), deleted)
            self._condemned.append(deleted)
