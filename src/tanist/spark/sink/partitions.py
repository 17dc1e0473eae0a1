"""Which partition a row goes to: the one it names, else by its key as Java's clients choose, else by its value.

Owns murmur2 over whole columns. A row without a key goes where its value's fingerprint points, not to the next
partition in turn: a batch that is written again must send the same rows to the same partitions.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tanist.spark.segments.fingerprints import PADDING_BYTES, fingerprints
from tanist.spark.sink.encoding import NoRecord, Rows

_SEED: Final = np.uint32(0x9747B28C)
_MULTIPLIER: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


def choose(rows: Rows, named: Any | None, count: int) -> Any:
    """For each row one of `count` partitions. `named`: the column `partition`, null where it says nothing."""
    chosen = np.full(len(rows), -1, np.int64)
    if named is not None:
        chosen = named.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).copy()
        said = named.is_valid().to_numpy(zero_copy_only=False)
        wrong = said & ((chosen < 0) | (chosen >= count))
        if wrong.any():
            raise NoRecord(f"there is no partition {chosen[wrong][0]}: the topic has {count}")
    open_rows = np.flatnonzero(chosen < 0)
    if rows.key is not None and len(open_rows):
        keyed = open_rows[pc.is_valid(rows.key).to_numpy(zero_copy_only=False)[open_rows]]
        chosen[keyed] = (murmur2(rows.key.take(pa.array(keyed))) & _POSITIVE) % np.uint32(count)
        open_rows = np.flatnonzero(chosen < 0)
    if len(open_rows):
        chosen[open_rows] = _hashed(rows.value.take(pa.array(open_rows)).fill_null(b"")) % np.uint64(count)
    return chosen


def murmur2(keys: Any) -> Any:
    """Kafka's hash of each key of a binary array without nulls, as uint32."""
    data, starts, lengths = _layout(keys, 3)
    hashes = _SEED ^ lengths.astype(np.uint32)
    if not len(hashes):
        return hashes
    words = np.ndarray((len(data) - 3,), "<u4", data, strides=(1,))
    # The longest first, so that those that still go on are always a prefix.
    order = np.argsort(-lengths, kind="stable")
    whole = lengths[order] // 4
    at, state = starts[order], hashes[order]
    for step in range(int(whole[0])):
        live = int(np.searchsorted(-whole, -step, side="left"))
        word = words[at[:live] + 4 * step] * _MULTIPLIER
        word = (word ^ word >> np.uint32(24)) * _MULTIPLIER
        state[:live] = state[:live] * _MULTIPLIER ^ word
    hashes[order] = state
    rest = lengths % 4
    end = starts + lengths - rest
    partial = np.flatnonzero(rest)
    mask = (np.uint64(1) << (8 * rest[partial]).astype(np.uint64)) - np.uint64(1)
    hashes[partial] = (hashes[partial] ^ (words[end[partial]] & mask.astype(np.uint32))) * _MULTIPLIER
    hashes = (hashes ^ hashes >> np.uint32(13)) * _MULTIPLIER
    return hashes ^ hashes >> np.uint32(15)


def _hashed(values: Any) -> Any:
    data, starts, lengths = _layout(values, PADDING_BYTES)
    return fingerprints(data, starts, starts + lengths)


def _layout(array: Any, padding_bytes: int) -> tuple[Any, Any, Any]:
    """The bytes of a binary array, padded, and where in them its elements lie."""
    bounds = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    first, last = int(bounds[0]), int(bounds[-1])
    data = np.zeros(last - first + padding_bytes + 1, np.uint8)
    if last > first:
        data[: last - first] = np.frombuffer(array.buffers()[2], np.uint8)[first:last]
    return data, bounds[:-1] - first, np.diff(bounds)
