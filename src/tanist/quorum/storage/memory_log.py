"""A `RaftLog` in memory, with a page cache that a crash can take: for tests and the model checker.

Behaves as `MetadataLog` does, but for retention: it keeps the latest snapshot and the records after it.
`tests/quorum/storage/test_quorum_logs.py` holds both to one suite.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from tanist.log.epochs import LeaderEpochCache
from tanist.log.log import OffsetOutOfRange
from tanist.ports import Chunk
from tanist.quorum.storage.batches import check_batches, decode_values, read_headers, voter_records
from tanist.quorum.storage.raft_log import MetadataBatch, VoterMessage
from tanist.quorum.storage.snapshots import check_snapshot, decode_snapshot, encode_snapshot, snapshot_voters
from tanist.quorum.voters import LogEnd, SnapshotId


class MemoryLog:
    def __init__(self) -> None:
        self.start_offset = 0
        self._batches: list[tuple[int, bytes, MetadataBatch]] = []
        """Base offset, bytes, and the batch that a reader gets."""
        self._epochs = LeaderEpochCache()
        self._snapshots: dict[SnapshotId, bytes] = {}
        self._download: tuple[SnapshotId, bytearray] | None = None
        self._end = 0

    # -- RaftLog

    @property
    def end_offset(self) -> int:
        return self._end

    @property
    def last_epoch(self) -> int:
        if self._epochs.entries:
            return self._epochs.latest_epoch
        latest = self.latest_snapshot_id
        return 0 if latest is None else latest.epoch

    @property
    def earliest_snapshot_id(self) -> SnapshotId | None:
        return min(self._snapshots, default=None)

    @property
    def latest_snapshot_id(self) -> SnapshotId | None:
        return max(self._snapshots, default=None)

    def end_of_epoch(self, epoch: int) -> LogEnd:
        found, offset = self._epochs.end_offset_for(epoch, self._end)
        if found < 0:
            return LogEnd(self.last_epoch, self._end)
        earliest = self.earliest_snapshot_id
        if earliest is not None and offset == earliest.end_offset and found == epoch:
            return LogEnd(earliest.epoch, earliest.end_offset)
        return LogEnd(found, offset)

    def begin_epoch(self, epoch: int) -> None:
        self._epochs.assign(epoch, self._end)

    def append(self, batches: memoryview, epoch: int) -> None:
        length = check_batches(batches, self._end, self.last_epoch, epoch)
        for position, header in read_headers(batches[:length]):
            batch = batches[position : position + header.size_bytes]
            self._epochs.assign(header.leader_epoch, header.base_offset)
            self._batches.append((header.base_offset, bytes(batch), decode_values(batch, header)))
            self._end = header.next_offset

    def truncate_to(self, offset: int) -> None:
        if offset >= self._end:
            self._epochs.truncate_from_end(self._end)
            return
        keep = bisect_right(self._batches, offset, key=lambda batch: batch[0])
        while keep and self._next_offset(keep - 1) > offset:
            keep -= 1
        self._end = self._batches[keep][0] if keep < len(self._batches) else offset
        del self._batches[keep:]
        self._epochs.truncate_from_end(self._end)

    def read(self, offset: int, max_bytes: int) -> Chunk | None:
        if offset >= self._end:
            return None
        index = self._index(offset)
        data = b""
        while index < len(self._batches) and (not data or len(data) + len(self._batches[index][1]) <= max_bytes):
            data += self._batches[index][1]
            index += 1
        return data or None

    def read_batches(self, from_offset: int, to_offset: int) -> Iterator[MetadataBatch]:
        if from_offset < min(self.start_offset, to_offset):
            raise OffsetOutOfRange(f"offset {from_offset} is before the log's start, {self.start_offset}")
        for base_offset, _, batch in self._batches[self._index(from_offset) :]:
            if base_offset >= to_offset:
                return
            if base_offset >= from_offset:
                yield batch

    def voter_records(self, from_offset: int) -> Iterator[tuple[int, VoterMessage]]:
        for base_offset, data, batch in self._batches:
            if base_offset >= from_offset and not batch.values:
                yield from voter_records(memoryview(data))

    # -- snapshots

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        data = self._snapshots.get(snapshot_id)
        return None if data is None else len(data)

    def snapshot_chunk(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> Chunk:
        return self._snapshots[snapshot_id][position : position + max_bytes]

    def create_snapshot(
        self,
        snapshot_id: SnapshotId,
        values: Iterable[bytes],
        *,
        wall_ms: int,
        last_contained_log_timestamp: int = 0,
        voters: Sequence[VoterMessage] = (),
    ) -> bool:
        if snapshot_id in self._snapshots:
            return False
        batches = encode_snapshot(
            snapshot_id,
            values,
            wall_ms=wall_ms,
            last_contained_log_timestamp=last_contained_log_timestamp,
            voters=voters,
        )
        self._snapshots[snapshot_id] = b"".join(batches)
        return True

    def read_snapshot(self, snapshot_id: SnapshotId) -> Iterator[MetadataBatch]:
        return decode_snapshot(_batches(self._snapshots[snapshot_id]))

    def snapshot_voter_records(self, snapshot_id: SnapshotId) -> Sequence[VoterMessage]:
        return snapshot_voters(_batches(self._snapshots[snapshot_id]))

    def begin_download(self, snapshot_id: SnapshotId) -> None:
        self._download = (snapshot_id, bytearray())

    def write_download(self, snapshot_id: SnapshotId, position: int, data: memoryview) -> None:
        self._partial(snapshot_id)[position:] = data

    def finish_download(self, snapshot_id: SnapshotId) -> None:
        data = bytes(self._partial(snapshot_id))
        check_snapshot(_batches(data))
        self._snapshots[snapshot_id] = data
        self._download = None
        self.restart_at(snapshot_id)

    def abandon_download(self) -> None:
        self._download = None

    def clean(self, now_ms: int, wall_ms: int) -> bool:
        latest = self.latest_snapshot_id
        if latest is None or latest.end_offset <= self.start_offset:
            return False
        self.start_offset = latest.end_offset
        self._batches = [batch for batch in self._batches if batch[0] >= latest.end_offset]
        self._epochs.truncate_from_start(latest.end_offset)
        if self._end == latest.end_offset and not self._batches:
            self._epochs.clear()
        self._snapshots = {latest: self._snapshots[latest]}
        return True

    def restart_at(self, snapshot_id: SnapshotId) -> None:
        self.start_offset = self._end = snapshot_id.end_offset
        self._batches.clear()
        self._epochs.clear()
        self._snapshots = {snapshot_id: self._snapshots[snapshot_id]}

    def _partial(self, snapshot_id: SnapshotId) -> bytearray:
        if self._download is None or self._download[0] != snapshot_id:
            raise ValueError(f"no download of {snapshot_id} is under way")
        return self._download[1]

    def _index(self, offset: int) -> int:
        return max(0, bisect_right(self._batches, offset, key=lambda batch: batch[0]) - 1)

    def _next_offset(self, index: int) -> int:
        return self._batches[index + 1][0] if index + 1 < len(self._batches) else self._end

    # -- losing power

    def crashed(self, durable_end: int) -> MemoryLog:
        """The log after a loss of power that spared the synced bytes."""
        survivor = MemoryLog()
        survivor.start_offset = self.start_offset
        survivor._end = self._end
        survivor._batches = list(self._batches)
        survivor._epochs = LeaderEpochCache(self._epochs.entries)
        survivor._snapshots = dict(self._snapshots)
        survivor.truncate_to(max(durable_end, self.start_offset))
        return survivor


def _batches(snapshot: bytes) -> Iterator[memoryview]:
    """The batches of a snapshot, and the bytes after the last whole one."""
    view = memoryview(snapshot)
    end = 0
    for position, header in read_headers(view):
        end = position + header.size_bytes
        yield view[position:end]
    if end < len(view):
        yield view[end:]
