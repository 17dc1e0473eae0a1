"""Record batches, magic 2: the unit in which records are sent, stored and replicated.

The fast path reads the 61-byte header (`HEADER`, `BatchHeader`), checks the CRC and patches the base offset and the
leader epoch in place; both lie before the part that the CRC covers. Records are decoded only where they must be:
validation of compacted topics, timestamps, control batches, compaction.

Magic 0 and 1 ended with Kafka 4.0. They are recognised, to be refused with a clear error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct as Layout
from typing import Final, NamedTuple

from tanist.wire.compression import MAX_DECOMPRESSED_BYTES, Compression, compress, decompress
from tanist.wire.crc import crc32c
from tanist.wire.errors import EncodingError, WireError
from tanist.wire.primitives import Buffer

HEADER: Final = Layout(">qiibIhiqqqhii")
HEADER_BYTES: Final = 61

BASE_OFFSET_AT: Final = 0
BATCH_LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
"""The start of the part that the CRC covers; it goes to the end of the batch."""
LAST_OFFSET_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
PRODUCER_EPOCH_AT: Final = 51
BASE_SEQUENCE_AT: Final = 53
RECORD_COUNT_AT: Final = 57

LENGTH_OVERHEAD: Final = 12
"""Bytes of a batch that its `batch_length` does not count: itself and the base offset."""
MAGIC: Final = 2

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

NO_TIMESTAMP: Final = -1

_LEAST_RECORD_BYTES: Final = 7
"""Length, attributes, two deltas, two lengths, header count: one byte each."""


class BatchHeader(NamedTuple):
    """The fields of a batch's header, in their order."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size_bytes(self) -> int:
        """Of the whole batch, header included."""
        return self.batch_length + LENGTH_OVERHEAD

    @property
    def partition_leader_epoch(self) -> int:
        return self.leader_epoch

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_horizon(self) -> bool:
        """Whether the base timestamp says from when compaction may drop tombstones and markers."""
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def last_sequence(self) -> int:
        return add_to_sequence(self.base_sequence, self.last_offset_delta)


class NewRecord(NamedTuple):
    """A record that has no offset yet."""

    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


class Record(NamedTuple):
    """A record of a batch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    sequence: int = -1


def add_to_sequence(sequence: int, increment: int) -> int:
    """Sequence numbers go back to 0 after 2^31 - 1; -1 (no producer) stays."""
    return -1 if sequence < 0 else (sequence + increment) & 0x7FFFFFFF


_make_header: Final = tuple.__new__  # `BatchHeader(*fields)`, without the call of a Python constructor


def read_header(view: Buffer, position: int = 0) -> BatchHeader:
    """The header of the batch at `position`. `WireError` if none can be there, or if it has an old magic.

    The batch may go beyond the end of the view.
    """
    left = len(view) - position
    if left > MAGIC_AT and view[position + MAGIC_AT] != MAGIC:
        magic = view[position + MAGIC_AT]
        if magic < MAGIC:
            raise WireError(f"records of the old message format (magic {magic}) are not supported")
        raise WireError(f"there is no message format with magic {magic}")
    if left < HEADER_BYTES:
        raise WireError(f"{left} bytes are too few for the header of a batch")
    header: BatchHeader = _make_header(BatchHeader, HEADER.unpack_from(view, position))
    if header.batch_length < HEADER_BYTES - LENGTH_OVERHEAD:
        raise WireError(f"a batch cannot have length {header.batch_length}")
    return header


def iterate_headers(view: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch in the view, in order.

    A batch that is cut off at the end is left out, as at the end of a fetch. `WireError` if there are other bytes in
    the place of a batch.
    """
    position = 0
    end = len(view)
    while end - position >= LENGTH_OVERHEAD:
        if position + HEADER_BYTES > end and (end - position <= MAGIC_AT or view[position + MAGIC_AT] == MAGIC):
            return
        header = read_header(view, position)
        if position + header.size_bytes > end:
            return
        yield position, header
        position += header.size_bytes


def iterate_batches(view: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Header and bytes of each whole batch in the view, as `iterate_headers` finds them."""
    whole = memoryview(view)
    for position, header in iterate_headers(whole):
        yield header, whole[position : position + header.size_bytes]


def crc_matches(view: Buffer, position: int, size: int) -> bool:
    """Whether the batch of `size` bytes at `position` has the CRC of its header."""
    covered = memoryview(view)[position + ATTRIBUTES_AT : position + size]
    stored: int = _CRC.unpack_from(view, position + CRC_AT)[0]
    found: int = crc32c(covered)
    return found == stored


_CRC: Final = Layout(">I")


def write_crc(batch: bytearray | memoryview, position: int, size: int) -> None:
    """Put the right CRC into a batch that was changed where the CRC covers it."""
    _CRC.pack_into(batch, position + CRC_AT, crc32c(memoryview(batch)[position + ATTRIBUTES_AT : position + size]))


# Decoding


def decode_batch(view: Buffer, *, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> list[Record]:
    """The records of the batch at the start of `view`, decompressed. `WireError` if they are malformed.

    The CRC is not checked here: the caller does that first (`crc_matches`).
    """
    header = read_header(view)
    if header.size_bytes > len(view):
        raise WireError(f"a batch of {header.size_bytes} bytes, of which {len(view)} are there")
    body = decompress(header.compression, memoryview(view)[HEADER_BYTES : header.size_bytes], max_bytes)
    count = header.record_count
    if count < 0 or count * _LEAST_RECORD_BYTES > len(body):
        raise WireError(f"{count} records in {len(body)} bytes")
    try:
        records, position = _decode_records(bytes(body), header)
    except (IndexError, UnicodeDecodeError) as error:
        raise WireError(f"the batch at offset {header.base_offset}: {error}") from error
    if position != len(body):
        raise WireError(f"{len(body) - position} bytes after the records of the batch at offset {header.base_offset}")
    return records


def _decode_records(body: bytes, header: BatchHeader) -> tuple[list[Record], int]:
    fixed_timestamp = header.max_timestamp if header.is_log_append_time else None
    base_offset, base_timestamp, base_sequence = header.base_offset, header.base_timestamp, header.base_sequence
    records = []
    p = 0
    for _ in range(header.record_count):
        length, p = _varint(body, p)
        end = p + length
        if length < 0 or end > len(body):
            raise WireError(f"a record of {length} bytes, {len(body) - p} bytes left")
        p += 1  # attributes, of which there are none
        delta, p = _varint(body, p)
        offset_delta, p = _varint(body, p)
        key, p = _nullable(body, p, end)
        value, p = _nullable(body, p, end)
        headers, p = _headers(body, p, end)
        if p != end:
            raise WireError(f"a record of {length} bytes takes {p - end + length}")
        records.append(
            Record(
                base_offset + offset_delta,
                base_timestamp + delta if fixed_timestamp is None else fixed_timestamp,
                key,
                value,
                headers,
                add_to_sequence(base_sequence, offset_delta),
            )
        )
    return records, p


def _varint(body: bytes, p: int) -> tuple[int, int]:
    """A zigzag varint of at most 64 bits. `IndexError` at the end of the body."""
    byte = body[p]
    p += 1
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), p
    value = byte & 0x7F
    shift = 7
    while True:
        byte = body[p]
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                raise WireError("a varint of more than 64 bits")
            return value >> 1 ^ -(value & 1), p
        shift += 7
        if shift > 63:
            raise WireError("a varint of more than 10 bytes")


def _nullable(body: bytes, p: int, end: int) -> tuple[bytes | None, int]:
    length, p = _varint(body, p)
    if length < 0:
        if length != -1:
            raise WireError(f"length {length} in a record")
        return None, p
    stop = p + length
    if stop > end:
        raise WireError(f"{length} bytes in a record that has {end - p} left")
    return body[p:stop], stop


def _headers(body: bytes, p: int, end: int) -> tuple[Sequence[tuple[str, bytes | None]], int]:
    count, p = _varint(body, p)
    if count == 0:
        return (), p
    if count < 0 or 2 * count > end - p:
        raise WireError(f"{count} headers in a record that has {end - p} bytes left")
    headers = []
    for _ in range(count):
        key, p = _nullable(body, p, end)
        if key is None:
            raise WireError("a record header without a key")
        value, p = _nullable(body, p, end)
        headers.append((key.decode(), value))
    return tuple(headers), p


# Encoding


def encode_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    compression: int = Compression.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """A batch of these records, at consecutive offsets. `EncodingError` if there are none."""
    if not records:
        raise EncodingError("a batch has at least one record")
    base_timestamp = records[0].timestamp
    max_timestamp = max(record.timestamp for record in records)
    attributes = compression | (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp = log_append_time_ms
    body = bytearray()
    for delta, record in enumerate(records):
        _append_record(body, record.timestamp - base_timestamp, delta, record)
    header = BatchHeader(
        base_offset, 0, leader_epoch, MAGIC, 0, attributes, len(records) - 1, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, len(records),
    )  # fmt: skip
    return _assemble(header, body)


def _assemble(header: BatchHeader, body: bytearray) -> bytearray:
    packed = compress(header.compression, body) if header.compression else body
    batch = bytearray(HEADER_BYTES)
    batch += packed
    HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - LENGTH_OVERHEAD))
    write_crc(batch, 0, len(batch))
    return batch


def _append_record(out: bytearray, timestamp_delta: int, offset_delta: int, record: NewRecord | Record) -> None:
    body = bytearray(1)
    _append_varint(body, timestamp_delta)
    _append_varint(body, offset_delta)
    _append_nullable(body, record.key)
    _append_nullable(body, record.value)
    _append_varint(body, len(record.headers))
    for key, value in record.headers:
        _append_nullable(body, key.encode())
        _append_nullable(body, value)
    _append_varint(out, len(body))
    out += body


def _append_nullable(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(1)
    else:
        _append_varint(out, len(data))
        out += data


def _append_varint(out: bytearray, value: int) -> None:
    value = value << 1 ^ value >> 63
    if value < 0 or value >> 64:
        raise EncodingError("a number in a record has more than 64 bits")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
