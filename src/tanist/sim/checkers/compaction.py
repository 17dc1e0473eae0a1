"""Compacted topics in the virtual world: the records that compaction may remove from a log.

Owns the facts with which the checkers judge such a log like any other. The history H of a partition is its committed
records. A compacted log may lack a batch, or records of a batch, if each of them was committed and a later committed
record has its key. For such a log `originals` gives the batches of H in its place, so that all properties are checked
as if it were whole. Any other gap violates S21. Records of aborted transactions may be gone as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tanist.log.log import Log
from tanist.log.markers import parse_marker
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import Place
from tanist.sim.oracle import Batch, PartitionOracle, batch_bytes
from tanist.wire.batch import BatchHeader, Record, decode_batch, iterate_batches
from tanist.wire.crc import crc32c

KEYS: Final = 7
POLICY: Final = "cleanup.policy"


def key_of(value: bytes) -> bytes:
    """The key under which clients write a value."""
    return b"key-%d" % (crc32c(value) % KEYS)


class CompactionAllowance:
    """The records that compaction may remove from one partition, updated as records are committed."""

    def __init__(self, oracle: PartitionOracle) -> None:
        self._oracle = oracle
        self._keys: dict[int, bytes] = {}
        """Offset -> key."""
        self._latest: dict[bytes, int] = {}
        """Key -> offset of its latest record, not counting those of transactions that are open or were aborted."""
        self._open: dict[int, list[int]] = {}
        """Producer id -> the offsets of its open transaction."""
        self._aborted: set[int] = set()
        self._markers: dict[int, tuple[int, int, Record]] = {}
        """Offset of a marker -> producer id, producer epoch, record."""
        self.aborted: list[tuple[int, int, int]] = []

    def committed(self, header: BatchHeader, record: Record) -> None:
        """A record is below the high watermark."""
        self._keys[record.offset] = bytes(record.key or b"")
        if header.is_transactional:
            self._open.setdefault(header.producer_id, []).append(record.offset)
        else:
            self._stands(record.offset)

    def ended(self, header: BatchHeader, batch: memoryview) -> None:
        """A marker is below the high watermark."""
        self._markers[header.base_offset] = _marker_of(header, batch)
        marker = parse_marker(batch)
        if marker is None:
            return
        offsets = self._open.pop(header.producer_id, [])
        if marker.aborted:
            self._aborted.update(offsets)
            if offsets:
                self.aborted.append((header.producer_id, offsets[0], header.base_offset))
            return
        for offset in offsets:
            self._stands(offset)

    def _stands(self, offset: int) -> None:
        """The record there is committed, and not part of a transaction that may yet abort."""
        key = self._keys[offset]
        self._latest[key] = max(offset, self._latest.get(key, -1))

    def may_be_gone(self, offset: int) -> bool:
        """Whether a later committed record has the same key, or the record's transaction was aborted.

        After an unclean election: always, the key may be lost.
        """
        if self._oracle.unclean > 0 or offset in self._aborted:
            return True
        key = self._keys.get(offset)
        return key is not None and self._latest.get(key, -1) > offset

    def originals(self, place: Place, log: Log, start: int, end: int, now_us: int) -> list[Batch]:
        """The batches of a log that begin in [start, end), as they were before compaction."""
        found: list[Batch] = []
        at = start
        for view in batch_bytes(log, start, end):
            for header, content in iterate_batches(view):
                if header.next_offset <= start:
                    continue
                batch = Batch.of(header)
                found += self._filled(place, at, batch.first, now_us)
                at = batch.end
                whole = self._original(batch)
                if whole is not None and header.is_control:
                    self._check_marker(place, header, content, now_us)
                elif whole is not None:
                    self._check_records(place, whole, content, now_us)
                found.append(whole or batch)
        return found + self._filled(place, at, end, now_us)

    def _check_marker(self, place: Place, header: BatchHeader, content: memoryview, now_us: int) -> None:
        """The cleaner rewrites a marker once, to give it a delete horizon (KIP-534)."""
        offset = header.base_offset
        if not header.has_horizon or self._markers[offset] != _marker_of(header, content):
            raise Violation("S21", now_us, place, f": the marker at {offset} is not what it was")

    def _check_records(self, place: Place, whole: Batch, content: memoryview, now_us: int) -> None:
        """What is left of a batch is as it was, and what is gone may be."""
        records = decode_batch(content)
        for record in records:
            if self._oracle.values.get(record.offset) != bytes(record.value or b""):
                raise Violation("S21", now_us, place, f": {record} is not what was committed there")
        left = {record.offset for record in records}
        self._judge(place, (each for each in range(whole.first, whole.end) if each not in left), now_us)

    def _original(self, batch: Batch) -> Batch | None:
        """The batch of the history that this batch is a part of; None if it is whole, or not committed."""
        position = self._oracle.position.get(batch.first)
        whole = None if position is None else self._oracle.history[position]
        if whole is None or whole == batch or (whole.end, whole.epoch) != (batch.end, batch.epoch):
            return None
        return whole

    def _filled(self, place: Place, start: int, end: int, now_us: int) -> list[Batch]:
        """The batches of the history between two batches, or before the log's end."""
        found: list[Batch] = []
        at = start
        while at < end:
            position = self._oracle.position.get(at)
            whole = None if position is None else self._oracle.history[position]
            if whole is None or whole.end > end:
                if self._oracle.unclean:
                    return found
                raise Violation("S21", now_us, place, f": offsets {at} to {end - 1} are gone, and were not committed")
            self._judge(place, range(whole.first, whole.end), now_us)
            found.append(whole)
            at = whole.end
        return found

    def _judge(self, place: Place, gone: Iterable[int], now_us: int) -> None:
        for offset in gone:
            if not self.may_be_gone(offset):
                raise Violation("S21", now_us, place, f": offset {offset} is gone, the latest of its key")


def _marker_of(header: BatchHeader, batch: memoryview) -> tuple[int, int, Record]:
    (record,) = decode_batch(batch)
    return header.producer_id, header.producer_epoch, record
