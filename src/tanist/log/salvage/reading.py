"""Reading of sound batches from bytes that may be damaged.

Owns the reading of bytes that were cut off a log: a tail that a truncation dropped is whole, but one that recovery cut
begins with the damage, and the batches behind it must be found. A batch counts when its header is possible and its CRC
is right. Behind a damaged batch the next is looked for first at the end that the damaged one states (so that batches
inside of records are not taken for the log's own), then byte by byte.

Reads are bounded by the scan's, whatever the bytes claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tanist.log.scan import BatchAt, DamagedBatch, fault_of, verified_batches
from tanist.ports import File, FileRange
from tanist.wire.batch import HEADER, HEADER_BYTES, MAGIC, MAGIC_AT, BatchHeader

_WINDOW_BYTES: Final = 64 * 1024
_MAGIC_BYTE: Final = bytes((MAGIC,))
_ATTRIBUTES_KNOWN: Final = 0x7F


def sound_batches(file: File, start: int, end: int, least_offset: int = 0) -> Iterator[BatchAt]:
    """The batches of [start, end) whose CRC is right, in order of position; none below `least_offset`."""
    position = start
    while position < end:
        try:
            for batch in verified_batches(file, position, end):
                position = batch.end
                if batch.header.base_offset >= least_offset:
                    yield batch
            return
        except DamagedBatch as damage:
            position = _behind(file, damage.position, end, least_offset)


def _behind(file: File, position: int, end: int, least_offset: int) -> int:
    """Where the next sound batch begins behind the damage at `position`; `end` if there is none."""
    head = file.read(position, min(HEADER_BYTES, end - position))
    if len(head) == HEADER_BYTES:
        header = BatchHeader(*HEADER.unpack_from(head))
        if _can_be(header, end - position, least_offset):
            # Its length may be wrong: it is believed if the offsets go on at the end that it states.
            following = position + header.size_bytes
            batch = _sound_at(file, following, end)
            if following == end or (batch is not None and batch.header.base_offset == header.next_offset):
                return following
    for candidate in _candidates(file, position + 1, end, least_offset):
        if _sound_at(file, candidate, end) is not None:
            return candidate
    return end


def _sound_at(file: File, position: int, end: int) -> BatchAt | None:
    try:
        return next(verified_batches(file, position, end), None)
    except DamagedBatch:
        return None


def _candidates(file: File, start: int, end: int, least_offset: int) -> Iterator[int]:
    """Positions at which a header can stand. The magic is looked for, so that zeros cost next to nothing."""
    position = start
    while end - position >= HEADER_BYTES:
        window = file.read(position, min(_WINDOW_BYTES, end - position))
        if len(window) < HEADER_BYTES:
            return
        last = len(window) - HEADER_BYTES
        at = window.find(_MAGIC_BYTE, MAGIC_AT)
        while 0 <= at <= last + MAGIC_AT:
            candidate = at - MAGIC_AT
            header = BatchHeader(*HEADER.unpack_from(window, candidate))
            if _can_be(header, end - position - candidate, least_offset):
                yield position + candidate
            at = window.find(_MAGIC_BYTE, at + 1)
        position += last + 1


def _can_be(header: BatchHeader, available: int, least_offset: int) -> bool:
    return (
        fault_of(header, available) is None
        and header.base_offset >= least_offset
        and header.attributes & ~_ATTRIBUTES_KNOWN == 0
        and 0 <= header.record_count <= header.last_offset_delta + 1
        and header.leader_epoch >= -1
    )


def holds_a_batch(ranges: Sequence[FileRange]) -> bool:
    """A batch that was torn by a crash was never whole; there must be one that was."""
    return any(True for each in ranges for _ in sound_batches(each.file, each.offset, each.offset + each.length))
