"""Record batches made by hand, byte for byte: an oracle that shares no code with what it tests."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from crc32c import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 8, 16, 32


def varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(index: int, delta_ms: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\0" + varint(delta_ms) + varint(index) + sized(key) + sized(value) + varint(0)
    return varint(len(body)) + body


def batch(
    values: Sequence[bytes | None] = (b"value",),
    *,
    base_offset: int = 0,
    timestamps: Sequence[int] | int = 1_000,
    key: bytes | None = b"k",
    leader_epoch: int = -1,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    magic: int = 2,
    offsets: Sequence[int] | None = None,
    last_delta: int | None = None,
    compress: bytes | None = None,
) -> memoryview:
    """One batch, in writable memory, its CRC right. `compress`: the records' bytes as they are to stand there."""
    times = [timestamps] * len(values) if isinstance(timestamps, int) else list(timestamps)
    deltas = list(range(len(values))) if offsets is None else list(offsets)
    base_timestamp = times[0] if times else 0
    body = b"".join(
        record(delta, time - base_timestamp, key, value)
        for delta, time, value in zip(deltas, times, values, strict=True)
    )
    if compress is not None:
        body = compress
    delta = (deltas[-1] if deltas else 0) if last_delta is None else last_delta
    data = bytearray(
        HEADER.pack(
            base_offset,
            49 + len(body),
            leader_epoch,
            magic,
            0,
            attributes,
            delta,
            base_timestamp,
            max(times, default=-1),
            producer_id,
            producer_epoch,
            sequence,
            len(values),
        )
        + body
    )
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return memoryview(data)


def marker(
    producer_id: int,
    epoch: int,
    *,
    commit: bool,
    coordinator_epoch: int = 0,
    base_offset: int = 0,
    leader_epoch: int = 0,
) -> memoryview:
    """A COMMIT or ABORT marker as a transaction coordinator writes it."""
    key = struct.pack(">hh", 0, 1 if commit else 0)
    return batch(
        [struct.pack(">hi", 0, coordinator_epoch)],
        key=key,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def offsets_in(data: bytes) -> list[tuple[int, int, int]]:
    """(base offset, last offset, leader epoch) of each whole batch in `data`."""
    found = []
    position = 0
    while position + HEADER.size <= len(data):
        fields = HEADER.unpack_from(data, position)
        if position + 12 + fields[1] > len(data):
            break
        found.append((fields[0], fields[0] + fields[6], fields[2]))
        position += 12 + fields[1]
    return found
