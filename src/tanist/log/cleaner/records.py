"""A batch with some of its records: reading the keys, and writing the remaining records.

Owns the bytes. Records are found by their lengths; only offset, time and key of each are read, and kept records are
copied whole, headers included. The rewritten batch has the same base and last offset, leader epoch, producer and codec
as before (followers and idempotent producers must see the same numbers), and another length, count and CRC.

A delete horizon (KIP-534) takes the place of the batch's base timestamp, marked by attribute bit 6; the records'
timestamp deltas then count from it, so that their times do not change.

It never decides which records are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tanist.wire.batch import (
    COMPRESSION_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    write_crc,
)
from tanist.wire.compression import compress, decompress
from tanist.wire.errors import WireError
from tanist.wire.primitives import Buffer

_LEAST_RECORD_BYTES: Final = 7


class StoredRecord(NamedTuple):
    """A record's place in the body of its batch, and the properties that compaction needs."""

    start: int
    """Of the record's length."""
    timed: int
    """Where the timestamp delta begins; the attributes are the byte before."""
    rest: int
    """Behind the timestamp delta."""
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def body_of(batch: Buffer, header: BatchHeader) -> bytes:
    """The records' bytes, decompressed. `WireError` if they are damaged."""
    body = bytes(decompress(header.compression, memoryview(batch)[HEADER_BYTES : header.size_bytes]))
    if header.record_count < 0 or header.record_count * _LEAST_RECORD_BYTES > len(body):
        raise WireError(f"{header.record_count} records in {len(body)} bytes")
    return body


def stored_records(body: bytes, count: int) -> Iterator[StoredRecord]:
    """The records of a body, in order. `WireError` where they are malformed."""
    start, size = 0, len(body)
    try:
        for _ in range(count):
            length, p = _varint(body, start)
            end = p + length
            timed = p + 1
            if length < 1 or end > size:
                raise WireError(f"a record of {length} bytes, {size - p} bytes left")
            timestamp_delta, rest = _varint(body, timed)
            offset_delta, p = _varint(body, rest)
            key_bytes, p = _varint(body, p)
            key = None
            if key_bytes >= 0:
                key = body[p : p + key_bytes]
                p += key_bytes
            value_bytes, p = _varint(body, p)
            if p > end:
                raise WireError(f"a record of {length} bytes takes {p - end + length} or more")
            yield StoredRecord(start, timed, rest, end, timestamp_delta, offset_delta, key, value_bytes >= 0)
            start = end
    except IndexError:
        raise WireError("the records are cut off") from None
    if start != size:
        raise WireError(f"{size - start} bytes after the last record")


def with_records(
    header: BatchHeader, body: bytes, kept: Sequence[StoredRecord], new_horizon_ms: int | None
) -> bytearray:
    """The batch with only the `kept` of its records, at least one; `new_horizon_ms` if it gets its horizon now."""
    base_ms = header.base_timestamp
    if header.is_log_append_time:
        max_ms = header.max_timestamp
    else:
        max_ms = max(base_ms + record.timestamp_delta for record in kept)
    attributes = header.attributes
    records = bytearray()
    if new_horizon_ms is None:
        for record in kept:
            records += body[record.start : record.end]
    else:
        attributes |= DELETE_HORIZON
        for record in kept:
            time_ms = max_ms if header.is_log_append_time else base_ms + record.timestamp_delta
            inner = bytearray(body[record.timed - 1 : record.timed])
            _append_varint(inner, time_ms - new_horizon_ms)
            inner += body[record.rest : record.end]
            _append_varint(records, len(inner))
            records += inner
        base_ms = new_horizon_ms
    kind = attributes & COMPRESSION_MASK
    return _assemble(
        header._replace(attributes=attributes, base_timestamp=base_ms, max_timestamp=max_ms, record_count=len(kept)),
        compress(kind, records) if kind else records,
    )


def without_records(header: BatchHeader) -> bytearray:
    """The empty batch that remembers a producer's last sequence, or where something ended."""
    attributes = header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return _assemble(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0), b"")


def _assemble(header: BatchHeader, body: Buffer) -> bytearray:
    size = HEADER_BYTES + len(body)
    batch = bytearray(HEADER_BYTES)
    HEADER.pack_into(batch, 0, *header._replace(batch_length=size - LENGTH_OVERHEAD))
    batch += body
    write_crc(batch, 0, size)
    return batch


def _varint(body: bytes, p: int) -> tuple[int, int]:
    byte = body[p]
    p += 1
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), p
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        if shift > 63:
            raise WireError("a varint of more than 10 bytes")
        byte = body[p]
        p += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return value >> 1 ^ -(value & 1), p


def _append_varint(out: bytearray, value: int) -> None:
    value = value << 1 ^ value >> 63
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
