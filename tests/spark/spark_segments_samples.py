"""Segments to test with: batches as producers make them, in folders as brokers lay them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from uuid import UUID

from tanist.log.checkpoints import META_PROPERTIES, MetaProperties
from tanist.wire.batch import NewRecord, encode_batch

START_MS = 1_700_000_000_000
ALL = [
    *("topic", "partition", "replica", "leader_epoch", "offset", "timestamp", "key", "value", "headers"),
    *("producer_id", "producer_epoch", "sequence", "is_control", "is_transactional", "crc_ok", "fingerprint"),
    *("batch_offset", "batch_position", "segment", "salvage_id", "damage"),
]


def some_records(count: int, first: int = 0, size: int = 20) -> list[NewRecord]:
    """With and without key, value and headers, of different lengths."""
    return [
        NewRecord(
            START_MS + number,
            None if number % 7 == 3 else b"key-%d" % number,
            None if number % 11 == 5 else b"v" * (size + number % 5) + b"%d" % number,
            (("trace", b"%d" % number), ("empty", None)) if number % 3 == 0 else (),
        )
        for number in range(first, first + count)
    ]


@dataclass
class SegmentBuilder:
    """The bytes of a segment, and where its batches begin."""

    base_offset: int = 0
    epoch: int = 0
    data: bytearray = field(default_factory=bytearray)
    positions: list[int] = field(default_factory=list)
    offset: int = -1
    index: bytearray = field(default_factory=bytearray)
    time_index: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self.offset = self.base_offset

    def batch(self, records: list[NewRecord], **settings: object) -> SegmentBuilder:
        encoded = encode_batch(records, base_offset=self.offset, leader_epoch=self.epoch, **settings)  # type: ignore[arg-type]
        self.positions.append(len(self.data))
        last = self.offset + len(records) - 1 - self.base_offset
        if self.data:
            self.index += Struct(">ii").pack(last, len(self.data))
            self.time_index += Struct(">qi").pack(max(record.timestamp for record in records), last)
        self.data += encoded
        self.offset += len(records)
        return self

    def batches(self, count: int, records: int, **settings: object) -> SegmentBuilder:
        for _ in range(count):
            self.batch(some_records(records, self.offset), **settings)
        return self

    def write(self, folder: Path, *, indexes: bool = False) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.base_offset:020d}.log"
        path.write_bytes(self.data)
        if indexes:
            path.with_suffix(".index").write_bytes(self.index)
            path.with_suffix(".timeindex").write_bytes(self.time_index)
        return path


def name_directory(directory: Path, node_id: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / META_PROPERTIES).write_bytes(MetaProperties("cluster", node_id, UUID(int=node_id)).encode())
