"""`NNN.snapshot`: the producers of a partition as of offset NNN, so that a start need not read the whole log.

Owns the file format (Kafka's version 1: version i16, crc32c u32, count i32, 46 bytes a producer) and which of the
files of a folder are kept. A snapshot is never trusted: a bad CRC, count or value makes it as good as absent, and an
older one, or the log itself, is read instead.

Where the snapshot lies above the high watermark, the transactions that were decided in between come after the
producers (count i32, 25 bytes each): the last stable offset stays below them until their markers are replicated. Apache
Kafka reads neither these bytes nor has such, and exposes records by a marker that may still be cut off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from struct import Struct
from typing import Final, NamedTuple

from tanist.log.names import SNAPSHOT_SUFFIX, offset_file, offset_of
from tanist.log.producers import BatchMetadata, CompletedTransaction, ProducerEntry, ProducerStates, sequence_after
from tanist.ports import Disk
from tanist.wire.crc import crc32c

VERSION: Final = 1
_HEAD: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_DECIDED: Final = Struct(">qqq?")
_CRC_START: Final = _HEAD.size


class CorruptSnapshotError(ValueError):
    """The file is no producer snapshot, or a damaged one."""


class ProducerSnapshot(NamedTuple):
    """The content of a file."""

    entries: list[ProducerEntry]
    unreplicated: list[CompletedTransaction]
    """Decided at or above the high watermark of the time."""


_NOTHING: Final = ProducerSnapshot([], [])


def encode_snapshot(entries: Iterable[ProducerEntry], unreplicated: Collection[CompletedTransaction] = ()) -> bytes:
    packed = [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.transaction_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    if unreplicated:
        body += _COUNT.pack(len(unreplicated)) + b"".join(_DECIDED.pack(*each) for each in unreplicated)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes, path: str) -> ProducerSnapshot:
    if len(data) < _CRC_START + _COUNT.size:
        raise CorruptSnapshotError(f"{path}: {len(data)} bytes are too few")
    version, crc = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshotError(f"{path}: version {version} is not known, expected {VERSION}")
    if crc32c(memoryview(data)[_CRC_START:]) != crc:
        raise CorruptSnapshotError(f"{path}: the CRC does not match")
    (count,) = _COUNT.unpack_from(data, _CRC_START)
    body = memoryview(data)[_CRC_START + _COUNT.size :]
    size = count * _ENTRY.size
    if not 0 <= size <= len(body):
        raise CorruptSnapshotError(f"{path}: announces {count} producers in {len(body)} bytes")
    entries: list[ProducerEntry] = []
    for producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first in _ENTRY.iter_unpack(
        body[:size]
    ):
        if producer_id < 0 or delta < 0:
            raise CorruptSnapshotError(f"{path}: producer {producer_id} with {delta + 1} records can't be")
        entry = ProducerEntry(producer_id, epoch)
        entry.last_timestamp = timestamp
        entry.coordinator_epoch = coordinator_epoch
        entry.transaction_first_offset = max(first, -1)
        if offset >= 0:
            entry.batches.append(BatchMetadata(sequence, offset, delta, timestamp))
            entry.next_sequence = sequence_after(sequence, 1)
        entries.append(entry)
    return ProducerSnapshot(entries, _decided(body[size:], path))


def _decided(data: memoryview, path: str) -> list[CompletedTransaction]:
    if not data:
        return []
    count = _COUNT.unpack_from(data)[0] if len(data) >= _COUNT.size else -1
    if count * _DECIDED.size != len(data) - _COUNT.size:
        raise CorruptSnapshotError(f"{path}: announces {count} decided transactions in {len(data)} bytes")
    decided = [CompletedTransaction(*fields) for fields in _DECIDED.iter_unpack(data[_COUNT.size :])]
    if any(not 0 <= each.first_offset <= each.last_offset for each in decided):
        raise CorruptSnapshotError(f"{path}: a transaction that ends before it begins")
    return decided


class SnapshotFiles:
    """The snapshots of one log's folder, known by their offsets."""

    __slots__ = ("_directory", "_disk", "_doubted", "_removed", "offsets")

    def __init__(self, disk: Disk, directory: str, names: Iterable[str]) -> None:
        self._disk = disk
        self._directory = directory
        found = (offset_of(name, SNAPSHOT_SUFFIX) for name in names)
        self.offsets = sorted(offset for offset in found if offset is not None)
        self._doubted: set[int] = set()
        """There, and not to be used: of records that recovery reads again."""
        self._removed: set[int] = set()
        """Removed since the start. A loss of power may bring one back, unless its successor is durable."""

    def path(self, offset: int) -> str:
        return f"{self._directory}/{offset_file(offset, SNAPSHOT_SUFFIX)}"

    @property
    def latest(self) -> int:
        """The offset of the latest snapshot, -1 when there is none."""
        return self.offsets[-1] if self.offsets else -1

    def write(self, offset: int, producers: ProducerStates, *, sync: bool) -> None:
        data = encode_snapshot(producers.entries.values(), producers.unreplicated)
        if offset not in self._doubted or self._disk.read_file(self.path(offset)) != data:
            again = offset in self._removed or offset in self._doubted
            self._disk.write_file(self.path(offset), data, sync=sync or again)
        self._doubted.discard(offset)
        if offset not in self.offsets:
            self.offsets = sorted([*self.offsets, offset])

    def load_latest(self, at_least: int, up_to: int) -> tuple[int, ProducerSnapshot, tuple[str, ...]]:
        """The latest readable snapshot between two offsets: its own (-1: none), its content, complaints.

        One from before the log's start is of no use: the batches between the two are not to be read any more, and a
        producer that is not known may go on where one that is known to be behind may not. Unreadable ones met on the
        way are removed, as Kafka does: they can't serve the next start either.
        """
        complaints: list[str] = []
        for offset in reversed([offset for offset in self.offsets if at_least <= offset <= up_to]):
            path = self.path(offset)
            try:
                return offset, decode_snapshot(self._disk.read_file(path), path), tuple(complaints)
            except (CorruptSnapshotError, FileNotFoundError) as error:
                complaints.append(str(error))
                self.remove(offset)
        return -1, _NOTHING, tuple(complaints)

    def remove(self, offset: int) -> None:
        if offset in self.offsets:
            self.offsets.remove(offset)
            self._removed.add(offset)
            self._disk.remove(self.path(offset))

    def doubt_above(self, offset: int) -> None:
        """What they say of records above is not known to be right. One that turns out so stays as it is: to remove and
        write it again costs two syncs, for each of thousands of logs.
        """
        self._doubted.update(each for each in self.offsets if each > offset)
        self.offsets = [each for each in self.offsets if each <= offset]

    def remove_doubted(self) -> None:
        """Those that were not written again."""
        for offset in sorted(self._doubted):
            self._removed.add(offset)
            self._disk.remove(self.path(offset))
        self._doubted.clear()

    def remove_above(self, offset: int) -> None:
        for later in [each for each in self.offsets if each > offset]:
            self.remove(later)

    def remove_strays(self, base_offsets: Collection[int]) -> None:
        """Keep those at a segment's start, and the latest of all if it lies above every segment: a clean stop's."""
        keep = set(base_offsets)
        highest = max(keep, default=-1)
        for offset in list(self.offsets):
            if offset not in keep and not (offset == self.offsets[-1] and offset > highest):
                self.remove(offset)
