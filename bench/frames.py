"""Request frames, encoded before the clock starts: Produce v9 and Fetch v12, by hand from the protocol guide.

Both versions name topics (no topic ids), and both brokers serve them. Record batches are magic 2, uncompressed, neither
idempotent nor transactional, so the same bytes can be sent again and again.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from crc32c import crc32c

PRODUCE, FETCH = 0, 1
CLIENT_ID = b"bench"
_HEADER = struct.Struct(">hhi")
_BATCH_TAIL = struct.Struct(">hiqqqhii")
# Where the error code of the one partition stands in an answer, counted from its length prefix, for a topic name of
# length n: prefix 4, correlation 4, tags 1, then for Produce: array 1, name 1 + n, array 1, index 4; for Fetch:
# throttle 4, error 2, session 4, array 1, name 1 + n, array 1, index 4.
_PRODUCE_ERROR_AT, _FETCH_ERROR_AT = 16, 26


@dataclass(frozen=True, slots=True)
class Frames:
    """What one workload sends, in turn, and where its answers tell an error."""

    requests: tuple[bytes, ...]
    error_at: int
    """Position of the partition's error code in an answer."""

    same_length: bool
    """Whether all answers have the length of the first: then they need not be parsed to be counted."""

    payload_bytes: int
    """Bytes of record batches in one request; 0 where the answer carries them."""

    def error_of(self, answer: bytes) -> int:
        """The partition's error code in an answer without its length prefix."""
        at = self.error_at - 4
        return int.from_bytes(answer[at : at + 2], "big")


def varint(value: int) -> bytes:
    """A zigzag varint, as records use them."""
    encoded = (value << 1) ^ (value >> 63)
    return unsigned_varint(encoded)


def unsigned_varint(value: int) -> bytes:
    pieces = bytearray()
    while value > 0x7F:
        pieces.append(value & 0x7F | 0x80)
        value >>= 7
    pieces.append(value)
    return bytes(pieces)


def compact_string(value: str) -> bytes:
    encoded = value.encode()
    return unsigned_varint(len(encoded) + 1) + encoded


def record_batch(values: list[bytes], timestamp_ms: int) -> bytes:
    """One batch of records without keys or headers."""
    records = bytearray()
    for delta, value in enumerate(values):
        body = b"\0" + varint(0) + varint(delta) + varint(-1) + varint(len(value)) + value + varint(0)
        records += varint(len(body)) + body
    tail = _BATCH_TAIL.pack(0, len(values) - 1, timestamp_ms, timestamp_ms, -1, -1, -1, len(values)) + records
    length = 4 + 1 + 4 + len(tail)
    return struct.pack(">qiibI", 0, length, -1, 2, crc32c(tail)) + tail


def batch_of_size(total_bytes: int, value_bytes: int, timestamp_ms: int, seed: int = 1) -> bytes:
    """A batch of about so many bytes (never more), of equal values that do not compress."""
    rng = random.Random(seed)
    overhead = len(record_batch([bytes(value_bytes)], timestamp_ms)) - len(record_batch([], timestamp_ms)) + 2
    count = max(1, (total_bytes - 61) // overhead)
    batch = record_batch([rng.randbytes(value_bytes) for _ in range(count)], timestamp_ms)
    if count > 1 and len(batch) > total_bytes:
        raise ValueError(f"{count} records make {len(batch)} bytes, more than {total_bytes}")
    return batch


def _frame(api_key: int, version: int, body: bytes) -> bytes:
    header = _HEADER.pack(api_key, version, 1) + struct.pack(">h", len(CLIENT_ID)) + CLIENT_ID + b"\0"
    return struct.pack(">i", len(header) + len(body)) + header + body


def produce(topic: str, partition: int, batch: bytes, acks: int) -> Frames:
    """Produce v9 of one batch."""
    body = b"".join(
        (
            b"\0",  # no transactional id
            struct.pack(">hi", acks, 30_000),
            b"\x02" + compact_string(topic),
            b"\x02" + struct.pack(">i", partition),
            unsigned_varint(len(batch) + 1),
            batch,
            b"\0\0\0",  # tags of partition, topic, request
        )
    )
    return Frames((_frame(PRODUCE, 9, body),), _PRODUCE_ERROR_AT + len(topic.encode()), True, len(batch))


def fetch(topic: str, partition: int, offsets: list[int], max_bytes: int) -> Frames:
    """Fetch v12, outside of any session, once for each offset."""
    requests = []
    for offset in offsets:
        body = b"".join(
            (
                struct.pack(">iiiibii", -1, 500, 1, max_bytes, 0, 0, -1),
                b"\x02" + compact_string(topic),
                b"\x02" + struct.pack(">iiqiqi", partition, -1, offset, -1, -1, max_bytes),
                b"\0\0",  # tags of partition, topic
                b"\x01",  # nothing forgotten
                b"\x01",  # no rack
                b"\0",
            )
        )
        requests.append(_frame(FETCH, 12, body))
    return Frames(tuple(requests), _FETCH_ERROR_AT + len(topic.encode()), False, 0)
