"""Snapshots of the metadata: Kafka's checkpoint format, and its file names.

A snapshot is a sequence of record batches: a control batch with the SnapshotHeader, data batches, a control batch with
the SnapshotFooter. Its name is `END_OFFSET-EPOCH.checkpoint` (KIP-630). Until it is whole and durable it ends in
`.checkpoint.part`, and while it waits to be deleted in `.checkpoint.deleted`. This module does not decide whether a
snapshot may be written or dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tanist.ports import File
from tanist.quorum.storage.batches import check_crc, decode_values, encode_values, read_headers, voter_records
from tanist.quorum.storage.raft_log import CorruptBatch, MetadataBatch, VoterMessage
from tanist.quorum.voters import SnapshotId
from tanist.wire.batch import BATCH_LENGTH_AT, HEADER_BYTES, LENGTH_OVERHEAD
from tanist.wire.control import (
    ControlMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    decode_control_batch,
    encode_control_batch,
)
from tanist.wire.errors import WireError
from tanist.wire.messages.end_txn_marker import EndTxnMarker

SUFFIX: Final = ".checkpoint"
PARTIAL_SUFFIX: Final = ".checkpoint.part"
DELETED_SUFFIX: Final = ".checkpoint.deleted"

BATCH_BYTES: Final = 32 * 1024
"""A data batch is closed when its values reach this: a few milliseconds' work."""
SLICE_BYTES: Final = BATCH_BYTES
"""How much is written in one go."""
BATCH_BYTES_MAX: Final = 64 * 1024 * 1024
"""No batch of a snapshot that is read may be larger; Kafka closes its batches at 8 MB."""

_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint(\.part|\.deleted)?")


class SnapshotName(NamedTuple):
    snapshot_id: SnapshotId
    whole: bool
    """Neither partial nor deleted."""


def file_name(snapshot_id: SnapshotId, suffix: str = SUFFIX) -> str:
    return f"{snapshot_id.end_offset:020d}-{snapshot_id.epoch:010d}{suffix}"


def parse_name(name: str) -> SnapshotName | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return SnapshotName(SnapshotId(int(match[1]), int(match[2])), match[3] is None)


def encode_snapshot(
    snapshot_id: SnapshotId,
    values: Iterable[bytes],
    *,
    wall_ms: int,
    last_contained_log_timestamp: int,
    voters: Sequence[VoterMessage] = (),
) -> Iterator[bytearray]:
    """The snapshot, batch by batch. Its offsets begin at 0 and mean nothing. `voters` stand beside its header."""
    epoch = snapshot_id.epoch
    first = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp)
    yield encode_control_batch([first, *voters], base_offset=0, leader_epoch=epoch, timestamp_ms=wall_ms)
    offset = 1 + len(voters)
    pending: list[bytes] = []
    size = 0
    for value in values:
        pending.append(value)
        size += len(value)
        if size >= BATCH_BYTES:
            yield encode_values(pending, base_offset=offset, epoch=epoch, timestamp=wall_ms)
            offset += len(pending)
            pending, size = [], 0
    if pending:
        yield encode_values(pending, base_offset=offset, epoch=epoch, timestamp=wall_ms)
        offset += len(pending)
    yield encode_control_batch([SnapshotFooterRecord()], base_offset=offset, leader_epoch=epoch, timestamp_ms=wall_ms)


def decode_snapshot(batches: Iterable[memoryview]) -> Iterator[MetadataBatch]:
    """The data batches of a snapshot. `CorruptBatch` unless it has its header first and its footer last."""
    begun = ended = False
    for batch in batches:
        _, header = next(read_headers(batch), (0, None))
        if header is None:
            raise CorruptBatch("a snapshot ends within a batch")
        check_crc(batch, 0, header)
        if ended:
            raise CorruptBatch("records after the snapshot's footer")
        if header.is_control:
            messages = control_messages(batch)
            if not begun and not isinstance(messages[0], SnapshotHeaderRecord):
                raise CorruptBatch("a snapshot begins with its header")
            begun = True
            ended = isinstance(messages[-1], SnapshotFooterRecord)
        elif not begun:
            raise CorruptBatch("a snapshot begins with its header")
        else:
            yield decode_values(batch, header)
    if not ended:
        raise CorruptBatch("a snapshot without its footer")


def check_snapshot(batches: Iterable[memoryview]) -> None:
    """`CorruptBatch` unless all of it can be read."""
    for _ in decode_snapshot(batches):
        pass


def snapshot_voters(batches: Iterable[memoryview]) -> tuple[VoterMessage, ...]:
    """The records before the data, which name the voters."""
    found: list[VoterMessage] = []
    for batch in batches:
        _, header = next(read_headers(batch), (0, None))
        if header is None or not header.is_control:
            break
        found += [message for _, message in voter_records(batch)]
    return tuple(found)


def control_messages(batch: memoryview) -> list[ControlMessage | EndTxnMarker]:
    try:
        _, records = decode_control_batch(batch)
    except WireError as error:
        raise CorruptBatch(str(error)) from error
    if not records:
        raise CorruptBatch("a control batch without records")
    return [record.message for record in records]


def last_contained_log_timestamp(first_batch: memoryview) -> int:
    """From the snapshot's header: when the last record that it covers was appended."""
    message = control_messages(first_batch)[0]
    if not isinstance(message, SnapshotHeaderRecord):
        raise CorruptBatch("a snapshot begins with its header")
    return message.last_contained_log_timestamp


def batch_size(start: bytes) -> int:
    """Size of the batch that `start`, its first bytes, begin."""
    if len(start) < LENGTH_OVERHEAD:
        raise CorruptBatch("a snapshot ends within a batch")
    length = int.from_bytes(start[BATCH_LENGTH_AT:LENGTH_OVERHEAD], "big", signed=True)
    size = length + LENGTH_OVERHEAD
    if not HEADER_BYTES <= size <= BATCH_BYTES_MAX:
        raise CorruptBatch(f"a batch of {size} bytes in a snapshot")
    return size


class SnapshotWriting:
    """A snapshot on its way to its file."""

    __slots__ = ("_batches", "file", "size_bytes", "snapshot_id")

    def __init__(self, snapshot_id: SnapshotId, file: File, batches: Iterator[bytearray]) -> None:
        self.snapshot_id = snapshot_id
        self.file = file
        self.size_bytes = 0
        self._batches = batches

    def write_slice(self) -> bool:
        """Write about 32 KB of it; False once all is written, which then has to be made durable."""
        end = self.size_bytes + SLICE_BYTES
        for batch in self._batches:
            self.file.write(self.size_bytes, [batch])
            self.size_bytes += len(batch)
            if self.size_bytes >= end:
                return True
        return False


def batches_in(file: File, size: int) -> Iterator[memoryview]:
    """The batches of a snapshot's file, one at a time."""
    position = 0
    while position < size:
        length = batch_size(file.read(position, LENGTH_OVERHEAD))
        yield memoryview(file.read(position, length))
        position += length
