"""Snapshots of the metadata: Kafka's checkpoint format, and its file names.

A snapshot is a sequence of record batches: a control batch with the SnapshotHeader, data batches, a control batch
with the SnapshotFooter. Its name says what it stands for: `END_OFFSET-EPOCH.checkpoint` (KIP-630). Until it is whole
and durable it is called `.checkpoint.part`; one that is to be deleted `.checkpoint.deleted`. Whether a snapshot may
be written or dropped is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from tanist.quorum.batches import (
    CONTROL,
    HEADER_BYTES,
    LENGTH_END,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    check_crc,
    control_records,
    decode_batch,
    encode_snapshot_footer,
    encode_snapshot_header,
    encode_values,
    read_headers,
)
from tanist.quorum.raft_log import CorruptBatch, MetadataBatch
from tanist.quorum.voters import SnapshotId
from tanist.wire.codec import decoder
from tanist.wire.messages.snapshot_header_record import SnapshotHeaderRecord

SUFFIX: Final = ".checkpoint"
PARTIAL_SUFFIX: Final = ".checkpoint.part"
DELETED_SUFFIX: Final = ".checkpoint.deleted"

BATCH_BYTES: Final = 1024 * 1024
"""A data batch is closed when it reaches this."""

_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint(\.part|\.deleted)?")


class SnapshotName(NamedTuple):
    snapshot_id: SnapshotId
    partial: bool
    deleted: bool


def file_name(snapshot_id: SnapshotId, suffix: str = SUFFIX) -> str:
    return f"{snapshot_id.end_offset:020d}-{snapshot_id.epoch:010d}{suffix}"


def parse_name(name: str) -> SnapshotName | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    snapshot_id = SnapshotId(int(match[1]), int(match[2]))
    return SnapshotName(snapshot_id, match[3] == ".part", match[3] == ".deleted")


def encode_snapshot(
    snapshot_id: SnapshotId, values: Iterable[bytes], *, wall_ms: int, last_contained_log_timestamp: int
) -> Iterator[bytearray]:
    """The snapshot, batch by batch."""
    epoch = snapshot_id.epoch
    yield encode_snapshot_header(
        epoch=epoch, timestamp=wall_ms, last_contained_log_timestamp=last_contained_log_timestamp
    )
    offset = 1
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
    yield encode_snapshot_footer(base_offset=offset, epoch=epoch, timestamp=wall_ms)


def decode_snapshot(batches: Iterable[memoryview]) -> Iterator[MetadataBatch]:
    """The data batches of a snapshot. `CorruptBatch` unless it has its header first and its footer last."""
    begun = ended = False
    for batch in batches:
        check_crc(batch)
        _, header = next(read_headers(batch))
        if ended:
            raise CorruptBatch("records after the snapshot's footer")
        if header.attributes & CONTROL:
            kinds = [kind for kind, _ in control_records(batch)]
            if not begun and SNAPSHOT_HEADER not in kinds:
                raise CorruptBatch("a snapshot begins with its header")
            begun = True
            ended = SNAPSHOT_FOOTER in kinds
        elif not begun:
            raise CorruptBatch("a snapshot begins with its header")
        else:
            yield decode_batch(batch)
    if not ended:
        raise CorruptBatch("a snapshot without its footer")


def last_contained_log_timestamp(first_batch: memoryview) -> int | None:
    """From the snapshot's header: when the last record that it stands for was appended."""
    for kind, value in control_records(first_batch):
        if kind == SNAPSHOT_HEADER:
            record, _ = decoder(SnapshotHeaderRecord, 0)(value, 0)
            return record.last_contained_log_timestamp
    return None


def batch_size(start: memoryview) -> int:
    """Size of the batch that `start`, its first bytes, begin."""
    if len(start) < LENGTH_END:
        raise CorruptBatch("a snapshot ends within a batch")
    size = int.from_bytes(start[8:LENGTH_END], "big", signed=True) + LENGTH_END
    if size < HEADER_BYTES:
        raise CorruptBatch(f"a batch of {size} bytes")
    return size
