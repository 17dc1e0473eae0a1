"""Spark's `xxhash64` in numpy: of many byte strings, and of integers.

Owns the one thing that lets a log be summed up where it is read: the hash of a record's value is the one that Spark
computes of what clients wrote down, so no value has to reach the JVM. XXH64 with the seed 42, as Spark has it; of
several columns each is hashed with the hash of those before as its seed. All byte strings take their steps together,
those that are done stand aside.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

SEED: Final = 42
_PRIMES: Final = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
_P1, _P2, _P3, _P4, _P5 = (np.uint64(prime) for prime in _PRIMES)
_LANES: Final = tuple(
    np.uint64(start % 2**64) for start in (SEED + _PRIMES[0] + _PRIMES[1], SEED + _PRIMES[1], SEED, SEED - _PRIMES[0])
)
_STRIPE_BYTES: Final = 32
_PADDING_BYTES: Final = 8
_BLOCK: Final = 8192


def of_longs(*columns: Any) -> Any:
    """`xxhash64(a, b, ...)` of columns of 64-bit integers that have no nulls, as unsigned integers."""
    found = np.empty(len(columns[0]), np.uint64)
    for first in range(0, len(found), _BLOCK):
        block = slice(first, first + _BLOCK)
        hashes: Any = np.uint64(SEED)
        for column in columns:
            mixed = hashes + (_P5 + np.uint64(8)) ^ _round(np.uint64(0), column[block].view(np.uint64))
            hashes = _finished(_rotated(mixed, 27) * _P1 + _P4)
        found[block] = hashes
    return found


def of_text(array: Any) -> Any:
    """`xxhash64(value)` of an Arrow array of strings, or of a dictionary of such; it has no nulls."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        return of_text(array.dictionary)[array.indices.to_numpy()]
    if not len(array):
        return np.empty(0, np.uint64)
    _, bounds, data = array.buffers()
    ends = np.frombuffer(bounds, np.int32, len(array) + 1, 4 * array.offset)
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    first, last = int(ends[0]), int(ends[-1])
    return of_bytes(content[first:last], ends[:-1] - first, np.diff(ends))


def of_bytes(data: Any, starts: Any, lengths: Any) -> Any:
    """`xxhash64(value)` of slices of `data`, an array of bytes, as unsigned integers. A length of -1 is null."""
    data = np.concatenate((data, np.zeros(_PADDING_BYTES, np.uint8)))
    # A word at every byte: where slices begin is up to the file.
    words = np.lib.stride_tricks.as_strided(data[:8].view("<u8"), (len(data) - 7,), (1,))
    hashes = np.empty(len(starts), np.uint64)
    # In blocks whose intermediate arrays stay in the cache.
    for first in range(0, len(starts), _BLOCK):
        block = slice(first, first + _BLOCK)
        hashes[block] = _of_block(data, words, starts[block].astype(np.int64), lengths[block].astype(np.int64))
    return hashes


def _of_block(data: Any, words: Any, at: Any, lengths: Any) -> Any:
    left = np.maximum(lengths, 0)
    hashes = np.full(len(at), np.uint64(SEED) + _P5)
    wide = np.flatnonzero(left >= _STRIPE_BYTES)
    if len(wide):
        hashes[wide] = _striped(words, at[wide], left[wide])
        whole = left[wide] // _STRIPE_BYTES * _STRIPE_BYTES
        at[wide] += whole
        left[wide] -= whole
    hashes += np.maximum(lengths, 0).astype(np.uint64)
    while int(left.min()) >= 8:
        hashes = _rotated(hashes ^ _round(np.uint64(0), words[at]), 27) * _P1 + _P4
        at += 8
        left -= 8
    while len(live := np.flatnonzero(left >= 8)):
        word = _round(np.uint64(0), words[at[live]])
        hashes[live] = _rotated(hashes[live] ^ word, 27) * _P1 + _P4
        at[live] += 8
        left[live] -= 8
    if len(live := np.flatnonzero(left >= 4)):
        half = (words[at[live]] & np.uint64(0xFFFFFFFF)) * _P1
        hashes[live] = _rotated(hashes[live] ^ half, 23) * _P2 + _P3
        at[live] += 4
        left[live] -= 4
    while len(live := np.flatnonzero(left > 0)):
        byte = data[at[live]].astype(np.uint64) * _P5
        hashes[live] = _rotated(hashes[live] ^ byte, 11) * _P1
        at[live] += 1
        left[live] -= 1
    return np.where(lengths < 0, np.uint64(SEED), _finished(hashes))


def _striped(words: Any, at: Any, left: Any) -> Any:
    lanes = [np.full(len(at), start) for start in _LANES]
    at, stripes = at.copy(), left // _STRIPE_BYTES
    live = np.arange(len(at))
    while len(live):
        for number, lane in enumerate(lanes):
            lane[live] = _round(lane[live], words[at[live] + 8 * number])
        at[live] += _STRIPE_BYTES
        stripes[live] -= 1
        live = live[stripes[live] > 0]
    hashes = sum((_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))), np.uint64(0))
    for lane in lanes:
        hashes = (hashes ^ _round(np.uint64(0), lane)) * _P1 + _P4
    return hashes


def _round(lane: Any, word: Any) -> Any:
    return _rotated(lane + word * _P2, 31) * _P1


def _rotated(numbers: Any, bits: int) -> Any:
    return (numbers << np.uint64(bits)) | (numbers >> np.uint64(64 - bits))


def _finished(hashes: Any) -> Any:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))
