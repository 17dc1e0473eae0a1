"""Rows as record batches: Arrow columns in, the bytes of a Produce request out, nothing done record by record.

Owns the encoding of records (keys, values, headers) with numpy and Arrow's kernels, the cut of rows into batches by
their size, and the batch's header. It decides neither where rows go nor in what order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tanist.wire.batch import HEADER, HEADER_BYTES, LENGTH_OVERHEAD, MAGIC, write_crc
from tanist.wire.compression import compress

_VARINT_BYTES: Final = 5
"""Of lengths, counts and offset deltas: they have 32 bits."""
_BOUNDS: Final = np.array([1 << 7 * width for width in range(1, _VARINT_BYTES)], np.uint64)
_AROUND_BYTES: Final = 16
"""What a record takes beside its key, value and headers, about."""


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
class Sealing:
    """What the header of a batch says of its producer."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


def cuts(rows: Rows, batch_bytes: int) -> Iterator[tuple[int, int]]:
    """Stretches of rows that are about so large as batches; a row that is larger goes alone."""
    sizes = np.maximum(_lengths(rows.value), 0) + _AROUND_BYTES
    if rows.key is not None:
        sizes += np.maximum(_lengths(rows.key), 0)
    if rows.headers is not None:
        sizes += _header_blocks(rows.headers)[2]
    ends = np.cumsum(sizes)
    first = before = 0
    while first < len(rows):
        last = max(first + 1, int(np.searchsorted(ends, before + batch_bytes, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])


def encode(rows: Rows) -> memoryview:
    """The records, as they stand behind a batch's header, all with the batch's first timestamp."""
    count = len(rows)
    zero = np.zeros(count, np.int64)
    value_length = _lengths(rows.value)
    key_length = zero - 1 if rows.key is None else _lengths(rows.key)
    delta = np.arange(count)
    length = 2 + _widths(delta) + _widths(key_length) + np.maximum(key_length, 0)
    length += _widths(value_length) + np.maximum(value_length, 0)
    parts: list[Any] = []
    if rows.headers is None:
        length += 1
        end: list[Any] = [pa.scalar(b"\0", pa.binary())]
    else:
        counts, blocks, sizes = _header_blocks(rows.headers)
        length += _widths(counts) + sizes
        end = [_varints(counts), blocks]
    parts = [_varints(length, zero, zero, delta, key_length)]
    if rows.key is not None:
        parts.append(rows.key.fill_null(b""))
    parts += [_varints(value_length), rows.value.fill_null(b""), *end]
    joined = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))
    bounds = np.frombuffer(joined.buffers()[1], np.int32)
    return memoryview(joined.buffers()[2])[int(bounds[joined.offset]) : int(bounds[joined.offset + count])]


def seal(records: memoryview, count: int, sealing: Sealing, *, timestamp_ms: int, compression: int) -> bytearray:
    """The batch of these records."""
    packed = compress(compression, records) if compression else records
    batch = bytearray(HEADER_BYTES + len(packed))
    batch[HEADER_BYTES:] = packed
    HEADER.pack_into(
        batch, 0, 0, len(batch) - LENGTH_OVERHEAD, -1, MAGIC, 0, compression, count - 1, timestamp_ms, timestamp_ms,
        sealing.producer_id, sealing.producer_epoch, sealing.base_sequence, count,
    )  # fmt: skip
    write_crc(batch, 0, len(batch))
    return batch


def _lengths(array: Any) -> Any:
    """-1 for null."""
    return pc.binary_length(array).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


def _header_blocks(headers: Any) -> tuple[Any, Any, Any]:
    """Of each record's headers: how many, their bytes as a binary array, and how many bytes."""
    counts = pc.list_value_length(headers).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    keys, values = headers.flatten().flatten()
    if keys.null_count:
        raise NoRecord("a header without a key")
    keys, values = keys.cast(pa.binary()), values.cast(pa.binary())
    encoded = pc.binary_join_element_wise(
        _varints(_lengths(keys)), keys, _varints(_lengths(values)), values.fill_null(b""), pa.scalar(b"", pa.binary())
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
    return np.searchsorted(_BOUNDS, _zigzag(values), side="right") + 1


def _varints(*columns: Any) -> Any:
    """A binary array with the varints of these numbers, one after another, for each row."""
    count = len(columns[0])
    matrix = np.empty((count, len(columns), _VARINT_BYTES), np.uint8)
    widths = np.empty((count, len(columns)), np.int64)
    for number, values in enumerate(columns):
        left = _zigzag(values)
        widths[:, number] = np.searchsorted(_BOUNDS, left, side="right") + 1
        most = int(widths[:, number].max(initial=1))
        for byte in range(most):
            matrix[:, number, byte] = left & np.uint64(0x7F)
            left >>= np.uint64(7)
            matrix[:, number, byte] |= np.where(widths[:, number] > byte + 1, 0x80, 0).astype(np.uint8)
    kept = np.arange(_VARINT_BYTES) < widths[:, :, None]
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(widths.sum(axis=1), out=offsets[1:])
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(matrix[kept])])
