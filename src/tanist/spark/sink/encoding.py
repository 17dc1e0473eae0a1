"""Rows as record batches: Arrow columns in, the bytes of a Produce request out, nothing done record by record.

Owns the encoding of records (keys, values, headers) with numpy and Arrow's kernels, the cut of rows into batches by
their size, and the batch's header. It decides neither where rows go nor in what order. Rows of many batches are
encoded in one go: payload is copied once, and a batch's records are a stretch of that memory. Lengths and deltas are
looked up in a table of varints, as almost all of them are small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tanist.wire.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
)
from tanist.wire.compression import compress
from tanist.wire.crc import crc32c

_VARINT_BYTES: Final = 5
"""Of lengths, counts and offset deltas: they have 32 bits."""
_BOUNDS: Final = np.array([1 << 7 * width for width in range(1, _VARINT_BYTES)], np.uint64)
_TABLE: Final = 1 << 15
"""How many varints are looked up, from -1 on, which is null's length. Lengths and deltas are rarely larger."""
_CRC_BYTES: Final = 4
_AROUND_BYTES: Final = 16
"""The bytes that a record takes beside its key, value and headers, about."""


class NoRecord(ValueError):
    """A row that cannot be a record."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of the same length: binary, binary, and a list of pairs; no keys and no headers is None."""

    key: Any | None
    value: Any
    headers: Any | None

    def __len__(self) -> int:
        return len(self.value)

    def take(self, which: Any) -> Rows:
        return Rows(*(None if each is None else each.take(pa.array(which)) for each in self._columns))

    def cut(self, first: int, last: int) -> Rows:
        return Rows(*(None if each is None else each.slice(first, last - first) for each in self._columns))

    @property
    def _columns(self) -> tuple[Any | None, Any, Any | None]:
        return self.key, self.value, self.headers


@dataclass(frozen=True, slots=True)
class Records:
    """Encoded records, one after another, as they stand behind a batch's header."""

    data: memoryview
    bounds: Any
    """Where each begins, and where the last ends."""

    def cut(self, first: int, last: int) -> memoryview:
        return self.data[int(self.bounds[first]) : int(self.bounds[last])]


@dataclass(frozen=True, slots=True)
class Sealing:
    """The producer's fields of a batch header."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


@dataclass(frozen=True, slots=True)
class Sealed:
    """A batch in two pieces, so that its records are not copied once more."""

    header: bytes
    records: Any
    count: int

    def __len__(self) -> int:
        return len(self.header) + len(self.records)

    def joined(self) -> bytes:
        return b"".join((self.header, self.records))


def sizes_of(rows: Rows) -> Any:
    """About how many bytes each row takes as a record."""
    sizes = np.maximum(_lengths(rows.value), 0) + _AROUND_BYTES
    if rows.key is not None:
        sizes += np.maximum(_lengths(rows.key), 0)
    if rows.headers is not None:
        sizes += _header_blocks(rows.headers)[2]
    return sizes


def cuts(sizes: Any, batch_bytes: int) -> Iterator[tuple[int, int]]:
    """Stretches of rows that are about so large together; a row that is larger goes alone."""
    ends = np.cumsum(sizes)
    first = before = 0
    while first < len(ends):
        last = max(first + 1, int(np.searchsorted(ends, before + batch_bytes, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])


def encode(rows: Rows, deltas: Any) -> Records:
    """The records, all with their batch's first timestamp. `deltas`: which record of its batch each row is."""
    value_length = _lengths(rows.value)
    # Attributes and the delta of the timestamp are a zero each; without headers their count is one more.
    length = 2 + _widths(deltas) + _widths(value_length) + np.maximum(value_length, 0)
    parts = [pa.scalar(b"\0\0", pa.binary()), _varints(deltas)]
    if rows.key is None:
        length += 1
        parts.append(pa.scalar(_NULL_LENGTH, pa.binary()))
    else:
        key_length = _lengths(rows.key)
        length += _widths(key_length) + np.maximum(key_length, 0)
        parts += [_varints(key_length), _filled(rows.key)]
    parts += [_varints(value_length), _filled(rows.value)]
    if rows.headers is None:
        length += 1
        parts.append(pa.scalar(b"\0", pa.binary()))
    else:
        counts, blocks, sizes = _header_blocks(rows.headers)
        length += _widths(counts) + sizes
        parts += [_varints(counts), blocks]
    joined = pc.binary_join_element_wise(_varints(length), *parts, _NOTHING)
    bounds = np.frombuffer(joined.buffers()[1], np.int32)[joined.offset : joined.offset + len(rows) + 1]
    return Records(memoryview(joined.buffers()[2] or b""), bounds)


def seal(records: Any, count: int, sealing: Sealing, *, timestamp_ms: int, compression: int) -> Sealed:
    """The batch of these records."""
    packed = compress(compression, records) if compression else records
    header = bytearray(HEADER_BYTES)
    HEADER.pack_into(
        header, 0, 0, HEADER_BYTES + len(packed) - LENGTH_OVERHEAD, -1, MAGIC, 0, compression, count - 1, timestamp_ms,
        timestamp_ms, sealing.producer_id, sealing.producer_epoch, sealing.base_sequence, count,
    )  # fmt: skip
    _write_crc(header, packed)
    return Sealed(bytes(header), packed, count)


def seal_again(batch: Sealed, sealing: Sealing, *, transactional: bool) -> Sealed:
    """The same records with another producer."""
    header = bytearray(batch.header)
    before = BatchHeader._make(HEADER.unpack(header))
    after = before._replace(
        attributes=before.attributes | (TRANSACTIONAL if transactional else 0),
        producer_id=sealing.producer_id,
        producer_epoch=sealing.producer_epoch,
        base_sequence=sealing.base_sequence,
    )
    HEADER.pack_into(header, 0, *after)
    _write_crc(header, batch.records)
    return Sealed(bytes(header), batch.records, batch.count)


def _write_crc(header: bytearray, records: Any) -> None:
    crc = crc32c(records, crc32c(memoryview(header)[ATTRIBUTES_AT:]))
    header[CRC_AT : CRC_AT + _CRC_BYTES] = crc.to_bytes(_CRC_BYTES, "big")


_NOTHING: Final = pa.scalar(b"", pa.binary())
_NULL_LENGTH: Final = b"\1"


def _filled(array: Any) -> Any:
    return array.fill_null(b"") if array.null_count else array


def _lengths(array: Any) -> Any:
    """-1 for null."""
    bounds = np.frombuffer(array.buffers()[1] or bytes(4), np.int32)[array.offset : array.offset + len(array) + 1]
    lengths = np.diff(bounds).astype(np.int64)
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return lengths


def _header_blocks(headers: Any) -> tuple[Any, Any, Any]:
    """Of each record's headers: how many, their bytes as a binary array, and how many bytes."""
    counts = pc.list_value_length(headers).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    keys, values = headers.flatten().flatten()
    if keys.null_count:
        raise NoRecord("a header without a key")
    keys, values = keys.cast(pa.binary()), values.cast(pa.binary())
    encoded = pc.binary_join_element_wise(
        _varints(_lengths(keys)), keys, _varints(_lengths(values)), _filled(values), _NOTHING
    )
    # They lie one after another already: a record's are a stretch of the same memory.
    ends = np.concatenate([[0], np.cumsum(_lengths(encoded))])
    bounds = ends[np.concatenate([[0], np.cumsum(counts)])]
    begin = int(np.frombuffer(encoded.buffers()[1], np.int32)[encoded.offset]) if len(encoded) else 0
    data = encoded.buffers()[2] if len(encoded) else pa.py_buffer(b"")
    offsets = pa.py_buffer((bounds + begin).astype(np.int32))
    return counts, pa.Array.from_buffers(pa.binary(), len(headers), [None, offsets, data]), np.diff(bounds)


def _zigzag(values: Any) -> Any:
    return ((values << 1) ^ (values >> 63)).astype(np.uint64)


def _widths(values: Any) -> Any:
    if len(values) and values.max() < _TABLE - 1:
        return _table()[1][values + 1]
    return np.searchsorted(_BOUNDS, _zigzag(values), side="right") + 1


def _varints(values: Any) -> Any:
    """A binary array with the varint of each of these numbers, of which none is below -1."""
    if len(values) and values.max() < _TABLE - 1:
        return _table()[0].take(pa.array(values + 1))
    return _encoded(values)


@cache
def _table() -> tuple[Any, Any]:
    """The varints from -1 on, and their widths."""
    varints = _encoded(np.arange(-1, _TABLE - 1))
    return varints, _lengths(varints)


def _encoded(values: Any) -> Any:
    left = _zigzag(values)
    widths = np.searchsorted(_BOUNDS, left, side="right") + 1
    matrix = np.empty((len(values), _VARINT_BYTES), np.uint8)
    for byte in range(_VARINT_BYTES):
        matrix[:, byte] = (left & np.uint64(0x7F)) | np.where(widths > byte + 1, np.uint64(0x80), np.uint64(0))
        left >>= np.uint64(7)
    kept = np.arange(_VARINT_BYTES) < widths[:, None]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(widths, out=offsets[1:])
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(matrix[kept])])
