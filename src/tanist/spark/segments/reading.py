"""Reading a stretch of a segment file: sound batches as rows, everything else as rows of damage.

Owns the window over the file, the checks of batches, decompression within bounds, and where to go on behind damage (the
salvage's rule: `tanist.log.salvage.reading`). Whatever the bytes are, it ends, needs a few windows of memory, and says
what it passed over. It knows nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from tanist.log.salvage.reading import sound_batches
from tanist.spark.segments import fingerprints, record_columns
from tanist.spark.segments.arrow_rows import Damage, Origin, damage_rows, rows
from tanist.spark.segments.batch_table import BatchTable, crcs_right, walk
from tanist.spark.stores import ReadFile, opened
from tanist.wire.batch import COMPRESSION_MASK, HEADER, HEADER_BYTES, BatchHeader
from tanist.wire.compression import decompress
from tanist.wire.errors import WireError

WINDOW_BYTES: Final = 32 << 20
BATCH_BYTES_MAX: Final = 256 << 20
"""A batch that claims more is damage; `message.max.bytes` is 1 MB by default."""

_PADDING: Final = max(fingerprints.PADDING_BYTES, record_columns.PADDING_BYTES)
_FIRST_WALK: Final = 64
_DAMAGES_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which batches are decoded at all; the rows of those may still be others. None: no bound."""

    least_offset: int | None = None
    most_offset: int | None = None
    least_timestamp_ms: int | None = None

    def of(self, table: BatchTable) -> Any:
        headers = table.headers
        mask = np.ones(len(table), bool)
        if self.least_offset is not None:
            mask &= headers["base_offset"] + headers["last_offset_delta"] >= self.least_offset
        if self.most_offset is not None:
            mask &= headers["base_offset"] <= self.most_offset
        if self.least_timestamp_ms is not None:
            mask &= headers["max_timestamp"] >= self.least_timestamp_ms
        return mask


Unknown: TypeAlias = Callable[[Any, BatchTable], Any]
"""Is called with sound batches and the bytes that they lie in, and says which of them are to be decoded."""


def read_stretch(
    path: str,
    start: int,
    end: int,
    origin: Origin,
    columns: Sequence[str],
    wanted: Wanted = Wanted(),
    unknown: Unknown | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of [start, end) of a file, which begins and ends between batches unless something is wrong."""
    try:
        file = opened(path)
    except FileNotFoundError:
        yield damage_rows([Damage(start, "the segment was removed since it was listed")], origin, columns)
        return
    with closing(file):
        yield from _Reading(file, end, origin, columns, wanted, unknown).read(start)


class _Reading:
    def __init__(
        self,
        file: ReadFile,
        end: int,
        origin: Origin,
        columns: Sequence[str],
        wanted: Wanted,
        unknown: Unknown | None,
    ) -> None:
        self._file = file
        self._end = end
        self._origin = origin
        self._columns = columns
        self._wanted = wanted
        self._unknown = unknown
        self._damages: list[Damage] = []
        self._memory: Any = np.empty(0, np.uint8)

    def read(self, position: int) -> Iterator[pa.RecordBatch]:
        window_bytes = WINDOW_BYTES
        while position < self._end:
            arena, length = self._window(position, window_bytes)
            came = yield from self._read_window(arena, length, position)
            if came > position:
                position, window_bytes = came, WINDOW_BYTES
            else:
                # Nothing wrong, and not one whole batch: it is larger than the window, or cut off.
                size = self._claimed(arena, length)
                if size is not None and size > length and size <= min(BATCH_BYTES_MAX, self._end - position):
                    window_bytes = size
                    continue
                position = self._tail(arena, length, position, size)
            if len(self._damages) >= _DAMAGES_MAX:
                yield self._damage_rows()
        if self._damages:
            yield self._damage_rows()

    def _damage_rows(self) -> pa.RecordBatch:
        rows = damage_rows(self._damages, self._origin, self._columns)
        self._damages = []
        return rows

    def _window(self, position: int, size: int) -> tuple[Any, int]:
        size = min(size, self._end - position)
        # One piece of memory for all windows, whose pages are touched once: rows that went out are copies.
        if len(self._memory) < size + _PADDING:
            self._memory = np.empty(size + _PADDING, np.uint8)
        arena = self._memory[: size + _PADDING]
        length = 0
        view = memoryview(arena)
        while length < size:
            got = self._file.read_into(view[length:size], position + length)
            if not got:
                break
            length += got
        arena[length:] = 0
        return arena, length

    def _read_window(self, arena: Any, length: int, base: int) -> Generator[pa.RecordBatch, None, int]:
        """Rows of the window; returns how far it came, in the file."""
        at = 0
        limit: int | None = None
        while True:
            table = walk(arena, at, length, limit)
            right = crcs_right(arena, table)
            wrong = np.flatnonzero(~right)
            sound = table.pick(slice(0, int(wrong[0]))) if len(wrong) else table
            yield from self._decoded(arena, sound, base)
            if len(wrong):
                at = int(table.positions[wrong[0]])
                fault = "the CRC is not that of the bytes"
            elif table.fault is not None:
                at, fault = table.end, table.fault
            elif limit is not None and len(table) == limit:
                at, limit = table.end, 8 * limit
                continue
            else:
                return base + table.end
            following = self._behind(base + at)
            self._damaged(arena, at, length, base, fault)
            if following - base > length or following >= self._end:
                return following
            # Behind damage only a little is walked at first: the next damage may be near, again and again.
            at, limit = following - base, _FIRST_WALK

    def _behind(self, position: int) -> int:
        """Where the next sound batch begins; never at `position` itself."""
        found = sound_batches(self._file, position, self._end)
        return next((batch.position for batch in found if batch.position > position), self._end)

    def _damaged(self, arena: Any, at: int, length: int, base: int, fault: str, crc_ok: bool | None = False) -> None:
        offset = epoch = None
        if at + HEADER_BYTES <= length:
            header = BatchHeader(*HEADER.unpack_from(arena, at))
            if header.magic == 2 and header.base_offset >= 0:
                offset, epoch = header.base_offset, header.leader_epoch
        self._damages.append(Damage(base + at, fault, crc_ok, offset, epoch))

    def _claimed(self, arena: Any, length: int) -> int | None:
        if length < HEADER_BYTES:
            return None
        return BatchHeader(*HEADER.unpack_from(arena)).size_bytes

    def _tail(self, arena: Any, length: int, position: int, size: int | None) -> int:
        """There is no whole batch here of a size that is read. It is damage unless the log went on meanwhile."""
        left = self._end - position
        file_end = self._file.size_now()
        if file_end < self._end and length < left:
            self._damages.append(Damage(position + length, "the segment was cut off while it was read"))
            return self._end
        crc_ok: bool | None = False
        if size is not None and BATCH_BYTES_MAX < size <= left:
            fault, crc_ok = f"not read: a batch of {size} bytes, more than {BATCH_BYTES_MAX}", None
        elif file_end > self._end and next(self._whole(position, file_end), None) == position:
            return self._end
        elif size is None:
            fault = f"{left} bytes are no batch"
        else:
            fault = f"a batch of {size} bytes is cut off after {left}"
        following = self._behind(position)
        self._damaged(arena, 0, length, position, fault, crc_ok)
        return following

    def _whole(self, position: int, file_end: int) -> Iterator[int]:
        for batch in sound_batches(self._file, position, file_end):
            yield batch.position

    def _decoded(self, arena: Any, table: BatchTable, base: int) -> Iterator[pa.RecordBatch]:
        mask = self._wanted.of(table)
        if self._unknown is not None and len(table):
            mask &= self._unknown(arena, table)
        codec = table.headers["attributes"] & COMPRESSION_MASK
        plain = table.pick(mask & (codec == 0))
        if len(plain):
            yield from self._rows(arena, plain, plain.positions + HEADER_BYTES, plain.positions + plain.sizes, base)
        packed = np.flatnonzero(mask & (codec != 0))
        while len(packed):
            packed = yield from self._unpacked(arena, table, packed, base)

    def _unpacked(self, arena: Any, table: BatchTable, packed: Any, base: int) -> Generator[pa.RecordBatch, None, Any]:
        """The rows of as many of the compressed batches as fill a window; returns the others."""
        view = memoryview(arena)
        bodies: list[Any] = []
        kept: list[int] = []
        total = done = 0
        starts = (table.positions + HEADER_BYTES).tolist()
        ends = (table.positions + table.sizes).tolist()
        for number in packed.tolist():
            if total >= WINDOW_BYTES:
                break
            done += 1
            kind = int(table.headers["attributes"][number]) & COMPRESSION_MASK
            try:
                body = decompress(kind, view[starts[number] : ends[number]])
            except WireError as error:
                self._unreadable(table, number, base, str(error))
                continue
            bodies.append(body)
            kept.append(number)
            total += len(body)
        if kept:
            unpacked = np.zeros(total + _PADDING, np.uint8)
            sizes = np.array([len(body) for body in bodies], np.int64)
            last = np.cumsum(sizes)
            for body, first, size in zip(bodies, (last - sizes).tolist(), sizes.tolist()):
                unpacked[first : first + size] = np.frombuffer(body, np.uint8, size)
            yield from self._rows(unpacked, table.pick(np.array(kept)), last - sizes, last, base)
        return packed[done:]

    def _rows(self, arena: Any, table: BatchTable, starts: Any, ends: Any, base: int) -> Iterator[pa.RecordBatch]:
        found = record_columns.decode(arena, starts, ends, table.headers["record_count"])
        for number in found.unreadable.tolist():
            self._unreadable(table, number, base, "the records are not what their batch claims")
        yield from rows(arena, table.headers, table.positions + base, found, self._origin, self._columns)

    def _unreadable(self, table: BatchTable, number: int, base: int, reason: str) -> None:
        header = table.headers[number]
        self._damages.append(
            Damage(
                base + int(table.positions[number]), f"unreadable: {reason}", True,
                int(header["base_offset"]), int(header["leader_epoch"]),
            )
        )  # fmt: skip
