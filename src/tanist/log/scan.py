"""Walking the batches of a segment file by bounded reads.

Owns the one rule for the shape of a batch in a file, used by lookups (headers only) and by recovery (CRCs too). Nothing
here reads more than `CHUNK_BYTES` at a time, whatever the file claims, except `read_batch`, whose bound is the size of
a batch that is there in full.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from tanist.ports import File
from tanist.wire.batch import ATTRIBUTES_AT, HEADER, HEADER_BYTES, LENGTH_OVERHEAD, MAGIC, BatchHeader
from tanist.wire.crc import crc32c

CHUNK_BYTES: Final = 64 * 1024
_FIRST_CHUNK_BYTES: Final = 4 * 1024
_LEGACY: Final = Struct(">qiIb")
_LEGACY_BYTES_MIN: Final = 14


class DamagedBatch(Exception):
    """There is no whole batch at `position`. `reason` is for the operator."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class UnsupportedFormatError(OSError):
    """A segment holds messages of the formats before v2 (Kafka 0.10 and earlier), which Kafka 4 no longer writes."""


class BatchAt(NamedTuple):
    """A batch, and where it starts in its file."""

    position: int
    header: BatchHeader

    @property
    def end(self) -> int:
        return self.position + self.header.size_bytes


def scan_headers(file: File, start: int, end: int) -> Iterator[BatchAt]:
    """The batches of [start, end), by their headers. Ends with `DamagedBatch` where one is broken or cut off.

    Reads are small for a lookup that ends soon, and where batches are large; a walk over small ones reads more at once.
    """
    position = start
    length = _FIRST_CHUNK_BYTES
    while position < end:
        chunk_start = position
        chunk = file.read(position, min(length, end - position))
        if len(chunk) < HEADER_BYTES:
            raise DamagedBatch(file.path, position, f"{end - position} bytes are too few for a batch")
        while position - chunk_start + HEADER_BYTES <= len(chunk):
            header = BatchHeader(*HEADER.unpack_from(chunk, position - chunk_start))
            reason = fault_of(header, end - position)
            if reason is not None:
                raise DamagedBatch(file.path, position, reason)
            yield BatchAt(position, header)
            position += header.size_bytes
        length = CHUNK_BYTES if position - chunk_start <= len(chunk) else _FIRST_CHUNK_BYTES


def fault_of(header: BatchHeader, available: int) -> str | None:
    """The reason why a header cannot be that of a whole batch within `available` bytes; None if it can."""
    if header.size_bytes < HEADER_BYTES:
        return f"a batch of {header.size_bytes} bytes is smaller than its header"
    if header.magic != MAGIC:
        return f"magic {header.magic}, expected {MAGIC}"
    if header.size_bytes > available:
        return f"a batch of {header.size_bytes} bytes is cut off after {available}"
    if header.last_offset_delta < 0 or header.base_offset < 0 or header.last_offset >= 2**63:
        return f"offsets {header.base_offset} + {header.last_offset_delta} can't be"
    return None


def verified_batches(file: File, start: int, end: int) -> Iterator[BatchAt]:
    """As `scan_headers`, and each batch's CRC has been found right.

    Reads every byte of the range once, or twice at most.
    """
    position = start
    chunk, chunk_start = b"", start
    while position < end:
        at = position - chunk_start
        if len(chunk) - at < HEADER_BYTES:
            chunk, chunk_start, at = file.read(position, min(CHUNK_BYTES, end - position)), position, 0
            if len(chunk) < HEADER_BYTES:
                raise DamagedBatch(file.path, position, f"{len(chunk)} bytes are too few for a batch")
        header = BatchHeader(*HEADER.unpack_from(chunk, at))
        reason = fault_of(header, end - position)
        if reason is not None:
            raise DamagedBatch(file.path, position, reason)
        batch = BatchAt(position, header)
        size = header.size_bytes
        if at + size > len(chunk) and size <= CHUNK_BYTES:
            chunk, chunk_start, at = file.read(position, min(CHUNK_BYTES, end - position)), position, 0
        if at + size <= len(chunk):
            crc = crc32c(memoryview(chunk)[at + ATTRIBUTES_AT : at + size])
        else:
            crc = crc_of(file, batch)
        if crc != header.crc:
            raise DamagedBatch(file.path, position, f"CRC {crc:08x}, the header says {header.crc:08x}")
        yield batch
        position += size


def crc_of(file: File, batch: BatchAt) -> int:
    """The CRC of a batch in a file, by bounded reads."""
    crc = 0
    position = batch.position + ATTRIBUTES_AT
    while position < batch.end:
        chunk = file.read(position, min(CHUNK_BYTES, batch.end - position))
        if not chunk:
            break
        crc = crc32c(chunk, crc)
        position += len(chunk)
    return crc


def read_batch(file: File, batch: BatchAt) -> bytes:
    data = file.read(batch.position, batch.header.size_bytes)
    if len(data) != batch.header.size_bytes:
        raise DamagedBatch(file.path, batch.position, f"{len(data)} of {batch.header.size_bytes} bytes could be read")
    return data


def is_legacy_message(file: File, position: int) -> bool:
    """Is this a sound message of format v0 or v1? Such a segment must not be taken for a torn one, and cut."""
    head = file.read(position, _LEGACY.size)
    if len(head) < _LEGACY.size:
        return False
    _, length, crc, magic = _LEGACY.unpack(head)
    end = position + LENGTH_OVERHEAD + length
    if magic not in (0, 1) or length < _LEGACY_BYTES_MIN or end > file.size:
        return False
    actual = 0
    at = position + 16
    while at < end:
        chunk = file.read(at, min(CHUNK_BYTES, end - at))
        if not chunk:
            return False
        actual = zlib.crc32(chunk, actual)
        at += len(chunk)
    return bool(actual == crc)
