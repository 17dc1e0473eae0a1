"""Rows of record batches as Arrow: the columns that are asked for, and no others.

Owns the columns of `tanist-segments` and how each of its columns is made from `BatchTable` and `RecordColumns`. Payload
is copied once, by Arrow's own gather, and only if a column wants it. A row of damage has what is known of a stretch of
bytes that is no sound batch, and nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tanist.spark.segments.fingerprints import fingerprints
from tanist.spark.segments.record_columns import RecordColumns, varints
from tanist.wire.batch import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL

HEADERS: Final = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
# Arrow makes an array of a list with the help of pandas, which takes longer to import than all the rest.
_NO_HEADERS: Final = pa.nulls(0, HEADERS.value_type)
TYPES: Final[dict[str, Any]] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "replica": pa.int32(),
    "leader_epoch": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS,
    "producer_id": pa.int64(),
    "producer_epoch": pa.int32(),
    "sequence": pa.int32(),
    "is_control": pa.bool_(),
    "is_transactional": pa.bool_(),
    "crc_ok": pa.bool_(),
    "fingerprint": pa.int64(),
    "batch_offset": pa.int64(),
    "batch_position": pa.int64(),
    "segment": pa.int64(),
    "salvage_id": pa.string(),
    "damage": pa.string(),
}
_PAYLOAD: Final = frozenset({"key", "value", "headers"})
_ROWS_NARROW: Final = 65536
_ROWS_WIDE: Final = 8192
"""Measured: with payload, batches of 8192 rows of 1 KB reach the JVM 15 % faster than those of 65536."""
_WIDE_BYTES: Final = 16 << 20
_US_MAX: Final = (2**63 - 1) // 1000


@dataclass(frozen=True, slots=True)
class Origin:
    """The columns that all rows of a file share."""

    topic: str
    partition: int
    replica: int | None
    segment: int
    salvage_id: str | None


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no sound batch, from `position` on."""

    position: int
    reason: str
    crc_ok: bool | None = False
    """True if the batch is what was written, and its records are not what they claim; None if it was not looked at."""
    base_offset: int | None = None
    """As the header says, if there is one; nothing vouches for it."""
    leader_epoch: int | None = None


def rows(
    arena: Any, headers: Any, positions: Any, found: RecordColumns, origin: Origin, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The records as record batches with these columns. `positions`: those of the batches in the file."""
    shared = pa.py_buffer(arena)
    total = len(found.batch)
    first = 0
    while first < total:
        last = min(total, first + (_ROWS_WIDE if _PAYLOAD.intersection(columns) else _ROWS_NARROW))
        if _PAYLOAD.intersection(columns):
            last = _within(found, first, last)
        group = _Group(arena, shared, headers, positions, found, slice(first, last), origin)
        yield pa.RecordBatch.from_arrays([_MAKERS[name](group) for name in columns], list(columns))
        first = last


def _within(columns: RecordColumns, first: int, last: int) -> int:
    """Fewer rows if they are large: a record batch of gigabytes would have to be in memory three times."""
    sizes = np.cumsum(columns.end[first:last] - columns.content[first:last])
    return max(first + 1, first + int(np.searchsorted(sizes, _WIDE_BYTES, side="right")))


def damage_rows(damages: Sequence[Damage], origin: Origin, columns: Sequence[str]) -> pa.RecordBatch:
    """One row for each."""
    count = len(damages)
    known: dict[str, Any] = {
        "topic": [origin.topic] * count,
        "partition": [origin.partition] * count,
        "replica": [origin.replica] * count,
        "segment": [origin.segment] * count,
        "salvage_id": [origin.salvage_id] * count,
        "leader_epoch": [damage.leader_epoch for damage in damages],
        "offset": [damage.base_offset for damage in damages],
        "batch_offset": [damage.base_offset for damage in damages],
        "batch_position": [damage.position for damage in damages],
        "crc_ok": [damage.crc_ok for damage in damages],
        "damage": [damage.reason for damage in damages],
    }
    arrays = [pa.array(known.get(name, [None] * count), TYPES[name]) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, list(columns))


def gather(arena: Any, shared: Any, starts: Any, lengths: Any) -> pa.Array:
    """A binary array of slices of the arena. Length -1 is null.

    The slices and the gaps between them are taken as one array, of which every other element is kept: a copy by Arrow,
    4 GB/s. Offsets have 32 bits, so that the slices' own stretch of the arena is what is looked at.
    """
    count = len(starts)
    if not count:
        return pa.array([], pa.binary())
    low = int(starts[0])
    bounds = np.empty(2 * count, np.int64)
    bounds[0::2] = starts - low
    bounds[1::2] = bounds[0::2] + np.maximum(lengths, 0)
    null = lengths < 0
    kept = pa.array(np.arange(0, 2 * count - 1, 2, dtype=np.int32), mask=null if null.any() else None)
    kind, offsets = (pa.binary(), bounds.astype(np.int32)) if bounds[-1] < 2**31 else (pa.large_binary(), bounds)
    slices = pa.Array.from_buffers(
        kind, 2 * count - 1, [None, pa.py_buffer(offsets), shared.slice(low, len(arena) - low)]
    )
    return slices.take(kept).cast(pa.binary())


def timestamps(columns: RecordColumns, headers: Any, part: slice) -> pa.Array:
    """Microseconds; what a file claims beyond the range of Spark's timestamps is brought to its end."""
    batch = columns.batch[part]
    at_ms = _each(headers["base_timestamp"], batch)
    at_ms += columns.timestamp_delta[part]
    fixed = headers["attributes"] & LOG_APPEND_TIME != 0
    if fixed.any():
        at_ms = np.where(_each(fixed, batch), _each(headers["max_timestamp"], batch), at_ms)
    np.clip(at_ms, -_US_MAX, _US_MAX, out=at_ms)
    at_ms *= 1000
    return pa.array(at_ms).view(pa.timestamp("us", "UTC"))


def _each(of_batches: Any, batch: Any) -> Any:
    """The columns of the batches, for each record."""
    return np.ascontiguousarray(of_batches).take(batch, mode="clip")


def header_arrays(arena: Any, shared: Any, columns: RecordColumns, part: slice) -> pa.Array:
    """The records' headers. Where they are not what they claim, the record has those that come before."""
    counts = columns.header_count[part]
    if not counts.any():
        none = pa.array(np.zeros(len(counts) + 1, np.int32))
        return pa.ListArray.from_arrays(none, _NO_HEADERS, type=HEADERS)
    counts, position, end = counts.copy(), columns.headers[part].copy(), columns.end[part]
    at: list[Any] = []
    step = 0
    while True:
        live = np.flatnonzero(counts > step)
        if not len(live):
            break
        limit = end[live]
        key_length, key = varints(arena, np.minimum(position[live], limit))
        wrong = (key_length < 0) | (key_length > limit - key)
        value_length, value = varints(arena, np.clip(key + np.maximum(key_length, 0), 0, limit))
        wrong |= (value_length < -1) | (value_length > limit - value)
        position[live] = np.clip(value + np.maximum(value_length, 0), 0, limit)
        counts[live[wrong]] = step
        at.append((live[~wrong], key[~wrong], key_length[~wrong], value[~wrong], value_length[~wrong]))
        step += 1
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    owner, key, key_length, value, value_length = (np.concatenate(each) for each in zip(*at))
    # By records, then by their headers' order, in which they were found.
    order = np.argsort(owner, kind="stable")
    keys = _text(gather(arena, shared, key[order], key_length[order]))
    values = gather(arena, shared, value[order], value_length[order])
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=HEADERS)


def _text(array: pa.Array) -> pa.Array:
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        # Not UTF-8, which no client of Kafka writes. Text with marks in it is better than no row.
        return pa.array([None if key is None else key.decode(errors="replace") for key in array.to_pylist()])


@dataclass(slots=True)
class _Group:
    arena: Any
    shared: Any
    headers: Any
    positions: Any
    columns: RecordColumns
    part: slice
    origin: Origin

    def of_batch(self, name: str) -> Any:
        return _each(self.headers[name], self.columns.batch[self.part])

    @property
    def count(self) -> int:
        return int(self.part.stop - self.part.start)

    def constant(self, value: Any, kind: Any) -> pa.Array:
        return pa.repeat(pa.scalar(value, kind), self.count)

    def offsets(self) -> Any:
        return self.of_batch("base_offset") + self.columns.offset_delta[self.part]

    def sequences(self) -> Any:
        base = self.of_batch("base_sequence").astype(np.int64)
        # They go back to 0 after 2^31 - 1; -1, of no producer, stays.
        after = (base + self.columns.offset_delta[self.part]) & 0x7FFFFFFF
        return np.where(base < 0, -1, after).astype(np.int32)

    def flag(self, bit: int) -> pa.Array:
        set_in = self.headers["attributes"] & bit != 0
        if not set_in.any():
            return self.constant(False, pa.bool_())
        return pa.array(_each(set_in, self.columns.batch[self.part]))

    def fingerprints(self) -> Any:
        found = self.columns
        return fingerprints(self.arena, found.content[self.part], found.end[self.part]).view(np.int64)


_MAKERS: Final[dict[str, Callable[[_Group], pa.Array]]] = {
    "topic": lambda g: g.constant(g.origin.topic, pa.string()),
    "partition": lambda g: g.constant(g.origin.partition, pa.int32()),
    "replica": lambda g: g.constant(g.origin.replica, pa.int32()),
    "leader_epoch": lambda g: pa.array(g.of_batch("leader_epoch")),
    "offset": lambda g: pa.array(g.offsets()),
    "timestamp": lambda g: timestamps(g.columns, g.headers, g.part),
    "key": lambda g: gather(g.arena, g.shared, g.columns.key[g.part], g.columns.key_length[g.part]),
    "value": lambda g: gather(g.arena, g.shared, g.columns.value[g.part], g.columns.value_length[g.part]),
    "headers": lambda g: header_arrays(g.arena, g.shared, g.columns, g.part),
    "producer_id": lambda g: pa.array(g.of_batch("producer_id")),
    "producer_epoch": lambda g: pa.array(g.of_batch("producer_epoch").astype(np.int32)),
    "sequence": lambda g: pa.array(g.sequences()),
    "is_control": lambda g: g.flag(CONTROL),
    "is_transactional": lambda g: g.flag(TRANSACTIONAL),
    "crc_ok": lambda g: g.constant(True, pa.bool_()),
    "fingerprint": lambda g: pa.array(g.fingerprints()),
    "batch_offset": lambda g: pa.array(g.of_batch("base_offset")),
    "batch_position": lambda g: pa.array(g.positions[g.columns.batch[g.part]]),
    "segment": lambda g: g.constant(g.origin.segment, pa.int64()),
    "salvage_id": lambda g: g.constant(g.origin.salvage_id, pa.string()),
    "damage": lambda g: g.constant(None, pa.string()),
}
