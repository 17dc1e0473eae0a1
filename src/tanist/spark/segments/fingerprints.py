"""64 bits that stand for a record's key, value and headers, worked out for many records at once.

The hash covers the stored form of the record, from the key's length to the end: equal for the same record in every
replica and in every batch it is sent in, whatever its offset, timestamp and compression. The length is part of it, so
that what is cut off or padded differs.

This finds accidents: damage, divergence, another record in the same place. Two different records agree with a
probability of about 2^-64. It does not stand up to somebody who looks for two that agree; a record by itself should
then be compared.

A record's words are mixed, one by one and so that 0 stays 0, and summed up as a polynomial:
sum(mix(word) * BASE^number). So records of all lengths can be cut into rows of one width, each step of numpy serves all
rows, and the zeros that fill up a last row do not count. Stored fingerprints stay comparable as long as
`tests/spark/test_spark_fingerprints.py` has the same numbers in it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

_BASE: Final = 0x9E3779B97F4A7C15
_MIX: Final = np.uint64(0xD6E8FEB86659FD93)
_FINAL_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_FINAL_2: Final = np.uint64(0x94D049BB133111EB)

_HALF: Final = np.uint64(32)

_ROW_WORDS: Final = (4, 8, 16, 32)
_SAMPLE: Final = 256
_BLOCK_BYTES: Final = 128 * 1024
"""Rows are mixed in blocks that stay in the second-level cache: 2 to 3 times as fast as in main memory."""
PADDING_BYTES: Final = 8 * _ROW_WORDS[-1]
"""How much must follow the last record in its arena: the last row of each is read whole, then masked."""


def fingerprints(arena: Any, starts: Any, ends: Any) -> Any:
    """uint64 for each range of `arena`, a uint8 array with `PADDING_BYTES` behind the last range."""
    if not len(starts):
        return np.empty(0, np.uint64)
    lengths = ends - starts
    width = 8 * _row_words(lengths)
    # Each range is some whole rows, and a last one that it does not fill.
    whole = lengths // width
    filled = whole * width
    sums = _row_sums(arena, starts + filled, width, lengths - filled)
    long = np.flatnonzero(whole)
    if len(long):
        rows = whole[long]
        first = np.cumsum(rows) - rows
        number = np.arange(int(rows.sum())) - np.repeat(first, rows)
        found = _row_sums(arena, np.repeat(starts[long], rows) + number * width, width)
        powers = _powers(pow(_BASE, width // 8, 1 << 64), int(rows.max()) + 1)
        found *= powers[number]
        sums *= powers[whole]
        sums[long] += np.add.reduceat(found, first)
    return finished(sums ^ (lengths.astype(np.uint64) * _FINAL_2))


def _row_words(lengths: Any) -> int:
    """The width that wastes least: rows as long as the records mostly are, as a few hundred of them tell."""
    usual = int(np.median(lengths[:: len(lengths) // _SAMPLE + 1]))
    return next((words for words in _ROW_WORDS if 8 * words > usual), _ROW_WORDS[-1])


def _row_sums(arena: Any, starts: Any, width: int, lengths: Any = None) -> Any:
    """The polynomial of each row of `width` bytes; of as many of them as `lengths` says."""
    # An element of a void type is copied whole; the same with a second dimension takes three times as long.
    windows = np.ndarray((len(arena) - width + 1,), f"V{width}", arena, strides=(1,))
    masks, powers = _of_width(width)
    block = max(1, _BLOCK_BYTES // width)
    scratch = np.empty((min(block, len(starts)), width // 8), np.uint64)
    sums = np.empty(len(starts), np.uint64)
    for first in range(0, len(starts), block):
        last = min(first + block, len(starts))
        shifted = scratch[: last - first]
        found = windows[starts[first:last]].view("<u8").reshape(-1, width // 8)
        if lengths is not None:
            found &= masks.take(lengths[first:last], axis=0, out=shifted, mode="clip")
        np.right_shift(found, _HALF, out=shifted)
        found ^= shifted
        found *= _MIX
        np.right_shift(found, _HALF, out=shifted)
        found ^= shifted
        np.vecdot(found, powers, out=sums[first:last])
    return sums


@cache
def _of_width(width: int) -> tuple[Any, Any]:
    """For each number of bytes that count the mask of a row, and the powers by which its words are multiplied."""
    masks = (np.tri(width + 1, width, -1, dtype=np.uint8) * np.uint8(0xFF)).view("<u8")
    return masks, _powers(_BASE, width // 8)


def _powers(base: int, count: int) -> Any:
    """base^0, base^1 ... modulo 2^64."""
    factors = np.full(count, base, np.uint64)
    factors[0] = 1
    return np.multiply.accumulate(factors)


def finished(value: Any) -> Any:
    value ^= value >> np.uint64(30)
    value *= _FINAL_1
    value ^= value >> np.uint64(27)
    value *= _FINAL_2
    value ^= value >> np.uint64(31)
    return value
