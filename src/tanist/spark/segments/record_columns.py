"""Records of many batches as numpy columns: where each record, its key, its value and its headers lie.

Owns the decoding of record bodies. The chain of record lengths is sequential inside a batch and independent between
batches, so it is walked in lock-step: record i of all batches at once, with numpy; the few batches that are left when
the others have ended are walked by a plain loop, or leapt over where records are equally long. Everything behind the
lengths is decoded for all records at once.

The bytes may be anything. Nothing is allocated by a count that the bytes of the body do not bear out; each position is
clamped to its record before it is read; a batch whose records are not what they claim is named in `unreadable`, and its
neighbours are decoded all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

PADDING_BYTES: Final = 16
"""How much must follow the last body in its arena: a varint that begins at the end is read, and then refused."""

LEAST_RECORD_BYTES: Final = 7
"""Length, attributes, two deltas, two lengths, header count: one byte each."""

_LOCK_STEP_BATCHES: Final = 8
"""With fewer batches a step of numpy (2 us) costs more than the plain loop (0.35 us a record)."""
_VARINT_BYTES_MAX: Final = 10
_LEAP_MAX: Final = 4096
_BLOCK_RECORDS: Final = 4096
_FIELDS: Final = 10
_STEPS_MAX: Final = 256
"""At a time in one table, which then stays in the cache."""
_TRUSTED_STEPS: Final = 16
"""Before it is looked whether all batches can go on."""
_PAIR: Final = np.uint64(0xFFFF)
_TOO_FAR: Final = 1 << 40
"""An advance that leads beyond any end."""


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """One element per record, in the order of batches and records. Positions are those of the arena."""

    batch: Any
    """Which of the batches."""
    offset_delta: Any
    timestamp_delta: Any
    content: Any
    """Where the record goes on behind its deltas: key, value and headers, to `end`."""
    end: Any
    key: Any
    key_length: Any
    """-1: null."""
    value: Any
    value_length: Any
    """-1: null."""
    header_count: Any
    headers: Any
    """Where the first header begins."""
    unreadable: Any
    """Numbers of the batches whose records are not what they claim; they have none here."""


def decode(arena: Any, starts: Any, ends: Any, counts: Any) -> RecordColumns:
    """The records of bodies that lie at [start, end) of `arena`, a uint8 array with `PADDING_BYTES` behind the last."""
    counts = counts.astype(np.int64)
    good = (counts >= 0) & (counts * LEAST_RECORD_BYTES <= ends - starts)
    while True:
        numbers = np.flatnonzero(good)
        columns, bad = _decode(arena, numbers, starts[numbers], ends[numbers], counts[numbers])
        if columns is not None:
            return replace(columns, unreadable=np.flatnonzero(~good))
        # Batches do not depend on each other: without the bad ones the rest is decoded anew, once or twice at most.
        good[numbers[bad]] = False


def _decode(arena: Any, numbers: Any, starts: Any, ends: Any, counts: Any) -> tuple[RecordColumns | None, Any]:
    position, bad = record_positions(arena, starts, ends, counts)
    if bad.any():
        return None, bad
    fields = np.empty((_FIELDS, len(position)), np.int64)
    wrong = np.zeros(len(position), bool)
    # In blocks whose intermediate arrays stay in the cache.
    for first in range(0, len(position), _BLOCK_RECORDS):
        block = slice(first, first + _BLOCK_RECORDS)
        wrong[block] = _parse(arena, position[block], fields[:, block])
    if wrong.any():
        owner = np.repeat(np.arange(len(numbers)), counts)
        bad[owner[wrong]] = True
        return None, bad
    return RecordColumns(*(np.repeat(numbers, counts), *fields, bad)), bad


def _parse(arena: Any, position: Any, fields: Any) -> Any:
    """The columns of the records at these positions, in the order of `RecordColumns`; and those that are damaged.

    Eight bytes are taken at a time: those behind a record's length mostly hold all that comes before its key. Nothing
    that is read behind a record's end is believed: whatever leads there, its headers then do not end within it.
    """
    words = _words(arena)
    length, position, _ = _taken(arena, words[position], position, position)
    end = position + length
    position += 1  # attributes, of which there are none
    timestamp_delta, position, word = _taken(arena, words[position], position, end)
    offset_delta, content, word = _taken(arena, word, position, end)
    key_length, key, _ = _taken(arena, word, content, end)
    wrong = offset_delta.view(np.uint64) > 0x7FFFFFFF
    wrong |= (key_length < -1) | (key_length > end - key)
    key_end = _behind(key, key_length, end)
    value_length, value, _ = _taken(arena, words[key_end], key_end, end)
    wrong |= (value_length < -1) | (value_length > end - value)
    value_end = _behind(value, value_length, end)
    header_count, headers, _ = _taken(arena, words[value_end], value_end, end)
    # A header has two bytes at least; without headers the record ends here.
    wrong |= (header_count < 0) | (header_count > (end - headers) >> 1) | ((header_count == 0) & (headers != end))
    found = (
        offset_delta, timestamp_delta, content, end, key, key_length, value, value_length, header_count, headers,
    )  # fmt: skip
    for number, column in enumerate(found):
        fields[number] = column
    return wrong


def _behind(start: Any, length: Any, end: Any) -> Any:
    """Where what begins at `start` ends: within the record, whatever its length claims."""
    return start + np.minimum(np.maximum(length, 0), end - start)


def _taken(arena: Any, word: Any, position: Any, end: Any) -> tuple[Any, Any, Any]:
    """The varint at the beginning of each word, where it ends, and the word without it."""
    found = _VARINTS.take((word & _PAIR).view(np.int64), mode="clip")
    width = found & 3
    value = found >> 2
    behind = position + width
    word = word >> (width << 3).view(np.uint64)
    if not width.all():
        # Of three bytes and more: read where they lie. Their word stays, and so what follows is read there, too.
        more = np.flatnonzero(width == 0)
        within = np.minimum(position[more], end[more])
        value[more], after = _long_varints(arena, within)
        behind[more] = position[more] + (after - within)
    return value, behind, word


def record_positions(arena: Any, starts: Any, ends: Any, counts: Any) -> tuple[Any, Any]:
    """Where each record begins, at its length; and which batches' chains of lengths do not end with the body."""
    total = int(counts.sum())
    first = np.cumsum(counts) - counts
    found = np.empty(total, np.int64)
    bad = np.zeros(len(starts), bool)
    # The longest first, so that those that still go on are always a prefix.
    order = np.argsort(-counts, kind="stable")
    position, end, into, left = starts[order], ends[order], first[order], counts[order]
    live = int(np.searchsorted(-left, 0, side="left"))
    step = 0
    while live >= _LOCK_STEP_BATCHES:
        # As many steps as the shortest of those that go on has records.
        steps = min(int(left[live - 1]) - step, _STEPS_MAX)
        table = np.empty((steps + 1, live), np.int64)
        table[0] = position[:live]
        _step(arena, table, end[:live])
        position[:live] = table[steps]
        found[into[:live] + np.arange(step, step + steps)[:, None]] = table[:steps]
        step += steps
        live = int(np.searchsorted(-left, -step, side="left"))
    for number in range(live):
        into_first = int(into[number]) + step
        into_last = int(into[number]) + int(left[number])
        position[number] = _chain(arena, int(position[number]), int(end[number]), found[into_first:into_last])
    bad[order] |= position != end
    return found, bad


def _step(arena: Any, table: Any, end: Any) -> None:
    """From where a record of each batch begins, the table's first row, to where the next ones do: the other rows."""
    pairs = _pairs(arena)
    # Beyond its end a batch stays beyond its end, where the arena still is; it is found out by the caller.
    beyond = end + 1
    last = len(table) - 1
    for first in range(0, last, _TRUSTED_STEPS):
        rows = table[first : first + _TRUSTED_STEPS + 1]
        for at, following in pairwise(rows):
            advance = _ADVANCE[pairs[at].astype(np.int64)]
            np.add(at, advance, out=following)
            np.minimum(following, beyond, out=following)
        if advance.all():
            continue
        # A batch has stopped, at a length of more than two bytes: these few steps anew, and with care.
        for at, following in pairwise(rows):
            advance = _ADVANCE[pairs[at]]
            if not advance.all():
                _advance_long(arena, at, end, advance)
            np.add(at, advance, out=following)
            np.minimum(following, beyond, out=following)


def _chain(arena: Any, position: int, end: int, found: Any) -> int:
    """Fill `found` with the positions of the next records of one batch; gives where the last one ends, -1 if none can.

    Runs of records of one length are leapt over: where the same length stands at the same distance again and again,
    the chain goes through all of these places.
    """
    view = memoryview(arena)
    wanted = len(found)
    out: list[int] = []
    filled = 0
    leap = 8
    previous = -1
    while filled + len(out) < wanted:
        if position >= end:
            return -1
        start = position
        byte = view[position]
        position += 1
        length = byte & 0x7F
        shift = 7
        while byte > 0x7F:
            if shift > 63 or position >= end:
                return -1
            byte = view[position]
            position += 1
            length |= (byte & 0x7F) << shift
            shift += 7
        if length & 1:
            return -1
        width = position - start
        position += length >> 1
        if position > end:
            return -1
        out.append(start)
        if length != previous:
            previous = length
            continue
        # Two of one length: look at many places at once.
        size = position - start
        most = min(leap, (end - position) // size, wanted - filled - len(out))
        if most < 1:
            continue
        places = np.arange(position, position + most * size, size, dtype=np.int64)
        same = np.ones(most, bool)
        for byte_number in range(width):
            same &= arena[places + byte_number] == arena[start + byte_number]
        run = most if same.all() else int(np.argmin(same))
        leap = min(2 * leap, _LEAP_MAX) if run == most else 8
        previous = length if run == most else -1
        found[filled : filled + len(out)] = out
        filled += len(out)
        out.clear()
        found[filled : filled + run] = places[:run]
        filled += run
        position += run * size
    found[filled : filled + len(out)] = out
    return position


def _advance_long(arena: Any, at: Any, end: Any, advance: Any) -> None:
    """Fill in the advances over records whose length has more than two bytes, or can't be one."""
    long = np.flatnonzero(advance == 0)
    length, behind = varints(arena, at[long])
    wrong = (length < 0) | (length > end[long] - behind)
    advance[long] = np.where(wrong, _TOO_FAR, behind - at[long] + length)


def varints(arena: Any, position: Any) -> tuple[Any, Any]:
    """The zigzag varint at each position, and where it ends. One of more than ten bytes is cut after ten."""
    found = _VARINTS.take(_pairs(arena)[position], mode="clip")
    value = found >> 2
    width = found & 3
    behind = position + width
    if not width.all():
        more = np.flatnonzero(width == 0)
        value[more], behind[more] = _long_varints(arena, position[more])
    return value, behind


def _long_varints(arena: Any, position: Any) -> tuple[Any, Any]:
    value = np.zeros(len(position), np.int64)
    behind = position.copy()
    going_on = np.arange(len(position))
    for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
        byte = arena[behind[going_on]]
        value[going_on] |= (byte & 0x7F).astype(np.int64) << shift
        behind[going_on] += 1
        going_on = going_on[byte > 0x7F]
        if not len(going_on):
            break
    return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), behind


def _pairs(arena: Any) -> Any:
    """Each two neighbouring bytes as one number: lengths and deltas mostly have no more, and are looked up."""
    return np.ndarray((len(arena) - 1,), "<u2", arena, strides=(1,))


def _words(arena: Any) -> Any:
    """The eight bytes at each place as one number, the first byte the lowest."""
    return np.ndarray((len(arena) - 7,), "<u8", arena, strides=(1,))


def _tables() -> tuple[Any, Any]:
    """Of each two bytes: four times the value of the varint that begins there plus its width, and how far the next
    record is. 0 where the varint is longer, or the record's length can't be one."""
    pair = np.arange(1 << 16, dtype=np.int64)
    first, second = pair & 0xFF, pair >> 8
    width = np.where(first < 0x80, 1, np.where(second < 0x80, 2, 0))
    raw = np.where(first < 0x80, first, (first & 0x7F) | second << 7)
    value = (raw >> 1) ^ -(raw & 1)
    advance = np.where((width == 0) | (value < 0), 0, width + value)
    return np.where(width == 0, 0, value << 2 | width), advance


_VARINTS, _ADVANCE = _tables()
