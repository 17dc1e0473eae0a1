"""The quorum's protocol for a log: `MetadataLog` (files) and `MemoryLog` (tests, model checker) implement it.

`rules` decides what may be cut or committed. All of it is synchronous: it touches the page cache, and the node makes it
durable when a `SyncLog` asks for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tanist.ports import Chunk
from tanist.quorum.voters import LogEnd, SnapshotId
from tanist.wire.control import KRaftVersionRecord, VotersRecord

VoterMessage: TypeAlias = KRaftVersionRecord | VotersRecord
"""The control records that change the voters (KIP-853)."""


class MetadataBatch(NamedTuple):
    """A batch for a reader of metadata. A control batch has no values, but it takes offsets."""

    offset: int
    next_offset: int
    epoch: int
    timestamp: int
    values: Sequence[bytes]
    size_bytes: int = 0
    """With its head, as it is stored."""


class CorruptBatch(Exception):
    """Bytes that were fetched are not whole, consecutive batches. Nothing was appended."""


class RaftLog(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """Epoch of the last record; of the snapshot if the log is empty after one; 0 if there is nothing at all."""

    @property
    def earliest_snapshot_id(self) -> SnapshotId | None: ...

    @property
    def latest_snapshot_id(self) -> SnapshotId | None: ...

    def end_of_epoch(self, epoch: int) -> LogEnd:
        """The largest epoch not above `epoch` and where it ended; the log's end if `epoch` is newer."""

    def begin_epoch(self, epoch: int) -> None:
        """An epoch begins at the end of the log, even if no record of it is ever written (rule 143)."""

    def append(self, batches: memoryview, epoch: int) -> None:
        """Append batches as they are; one that is cut off at the end is left out.

        `CorruptBatch` if one does not follow the log, is of an epoch above `epoch` or below the log's, or has a
        wrong CRC.
        """

    def truncate_to(self, offset: int) -> None: ...

    def read(self, offset: int, max_bytes: int) -> Chunk | None:
        """Whole batches from the one that holds `offset` on, at least one; None at the end of the log."""

    def read_batches(self, from_offset: int, to_offset: int) -> Iterator[MetadataBatch]:
        """The batches that begin in [from_offset, to_offset). `OffsetOutOfRange` below the log's start."""

    def voter_records(self, from_offset: int) -> Iterator[tuple[int, VoterMessage]]:
        """The records that change the voters, and their offsets, from `from_offset` to the end."""

    def create_snapshot(
        self,
        snapshot_id: SnapshotId,
        values: Iterable[bytes],
        *,
        wall_ms: int,
        last_contained_log_timestamp: int = 0,
        voters: Sequence[VoterMessage] = (),
    ) -> bool:
        """Write a snapshot of these framed values, durably; False if there is one of that id."""

    def snapshot_voter_records(self, snapshot_id: SnapshotId) -> Sequence[VoterMessage]:
        """The records that name its voters; none in a snapshot of kraft.version 0."""

    def read_snapshot(self, snapshot_id: SnapshotId) -> Iterator[MetadataBatch]:
        """Its data batches. `CorruptBatch` if it is not whole; `KeyError` if there is no such snapshot."""

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """None: there is no such snapshot."""

    def snapshot_chunk(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> Chunk: ...

    def begin_download(self, snapshot_id: SnapshotId) -> None:
        """An empty partial snapshot; an earlier download is dropped."""

    def write_download(self, snapshot_id: SnapshotId, position: int, data: memoryview) -> None: ...

    def finish_download(self, snapshot_id: SnapshotId) -> None:
        """The partial snapshot is whole: keep it durably, then replace the log by one that begins at its end.

        `CorruptBatch` if it is not; then the log stays, and the download with it.
        """

    def abandon_download(self) -> None: ...

    def clean(self, now_ms: int, wall_ms: int) -> bool:
        """Drop what retention allows: old snapshots, and the log below the oldest kept one."""
