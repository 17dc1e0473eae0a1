"""The headers of many record batches as columns, and what of a buffer is no batch.

Owns the walk from batch to batch over a buffer, the headers as one numpy array, and their CRCs. The bytes may be
anything: a length is only followed as far as the buffer goes, and what cannot be a batch is `Damage`, never an
exception. Work per batch is a few hundred nanoseconds; nothing here is done per record.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

import numpy as np

from tanist.wire.batch import ATTRIBUTES_AT, BATCH_LENGTH_AT, HEADER_BYTES, LENGTH_OVERHEAD, MAGIC, MAGIC_AT
from tanist.wire.crc import crc32c

HEADER_DTYPE: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
"""`tanist.wire.batch.HEADER`, for numpy."""
if HEADER_DTYPE.itemsize != HEADER_BYTES:
    raise ImportError(f"a header of {HEADER_DTYPE.itemsize} bytes: a batch's has {HEADER_BYTES}")

_LENGTH: Final = Struct(">i")
_OFFSET_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class BatchTable:
    """Whole batches of a buffer, in their order."""

    positions: Any
    """int64: where each begins in the buffer."""
    headers: Any
    """`HEADER_DTYPE`, in the machine's byte order."""
    end: int
    """Where the last one ends: how far the walk came."""
    fault: str | None
    """The damage at `end`, None if the buffer ends there, or in the midst of a batch that may go on."""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def sizes(self) -> Any:
        return self.headers["batch_length"].astype(np.int64) + LENGTH_OVERHEAD

    def pick(self, which: Any) -> BatchTable:
        """These batches alone, by a mask or by their numbers."""
        return BatchTable(self.positions[which], self.headers[which], self.end, self.fault)


def walk(buffer: Any, start: int, end: int, limit: int | None = None) -> BatchTable:
    """The batches of `buffer[start:end]`, `limit` at most, while they are whole and their headers can be headers."""
    view = memoryview(buffer)
    unpack_length = _LENGTH.unpack_from
    found: list[int] = []
    position = start
    fault: str | None = None
    while position + HEADER_BYTES <= end and len(found) != limit:
        if view[position + MAGIC_AT] != MAGIC:
            fault = f"magic {view[position + MAGIC_AT]}, expected {MAGIC}"
            break
        following = position + LENGTH_OVERHEAD + unpack_length(view, position + BATCH_LENGTH_AT)[0]
        if following < position + HEADER_BYTES:
            fault = f"a batch of {following - position} bytes is smaller than its header"
            break
        if following > end:
            break
        found.append(position)
        position = following
    positions = np.array(found, np.int64)
    headers = _headers_at(buffer, positions)
    faulty = _first_impossible(headers)
    if faulty is not None:
        number, fault = faulty
        position = found[number]
        positions, headers = positions[:number], headers[:number]
    return BatchTable(positions, headers, position, fault)


def crcs_right(buffer: Any, table: BatchTable) -> Any:
    """For each batch, whether its CRC is what its header says."""
    view = memoryview(buffer)
    starts = (table.positions + ATTRIBUTES_AT).tolist()
    ends = (table.positions + table.sizes).tolist()
    found = [crc32c(view[start:end]) for start, end in zip(starts, ends)]
    return np.array(found, np.uint32) == table.headers["crc"]


def _headers_at(buffer: Any, positions: Any) -> Any:
    native = HEADER_DTYPE.newbyteorder("=")
    if not len(positions):
        return np.empty(0, native)
    array = np.frombuffer(buffer, np.uint8)
    rows = array[positions[:, None] + np.arange(HEADER_BYTES)]
    return rows.reshape(-1).view(HEADER_DTYPE).astype(native)


def _first_impossible(headers: Any) -> tuple[int, str] | None:
    """The first header that no log writes, though it has a length and a magic: `tanist.log.scan.fault_of`."""
    base, delta = headers["base_offset"], headers["last_offset_delta"].astype(np.int64)
    impossible = (delta < 0) | (base < 0) | (base > _OFFSET_MAX - delta)
    numbers = np.flatnonzero(impossible)
    if not len(numbers):
        return None
    number = int(numbers[0])
    found = headers[number]
    return number, f"offsets {found['base_offset']} + {found['last_offset_delta']} can't be"
