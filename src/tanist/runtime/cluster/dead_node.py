"""What the files of a dead node say of its replicas, without opening a log.

Owns the reading of checkpoints, the walk over the batches of the last segment from the last entry of its offset index
on, and the look at one record. A log that was read is not read again until its files change. It changes nothing; a file
that cannot be read is a position that is not known. The nodes may be Apache Kafka's.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from tanist.broker.config import METRICS_LISTENER
from tanist.log.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    CheckpointError,
    decode_epochs,
    decode_offsets,
)
from tanist.log.names import LOG_SUFFIX, folder_name, offset_of
from tanist.log.properties import log_directories, parse_properties
from tanist.log.scan import DamagedBatch, UnsupportedFormatError, scan_headers
from tanist.runtime.client.replica_positions import ReplicaPositions
from tanist.runtime.client.salvaged import SavedFile
from tanist.runtime.ports.synced_lengths import LEDGER_NAME, read_ledger
from tanist.wire.batch import Record, decode_batch
from tanist.wire.errors import WireError

_INDEX_ENTRY: Final = Struct(">ii")
_INDEX_BYTES_MAX: Final = 32 << 20
_CACHED: Final = 256


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    synced: int | None
    note: str | None


class DeadNode:
    """The log directories of a node whose process has ended."""

    def __init__(self, broker: int, directories: list[str]) -> None:
        self._broker = broker
        self._directories = [Path(each) for each in directories]
        self._read: dict[tuple[str, int, int], _Found] = {}

    def replica(self, topic: str, partition: int, since_ms: int | None) -> ReplicaPositions:
        """One replica, as far as its files say it."""
        for directory in self._directories:
            folder = directory / folder_name(topic, partition)
            if folder.is_dir():
                return self._replica(directory, folder, topic, partition, since_ms)
        note = "it has no log of this partition"
        return ReplicaPositions(self._broker, "dead", False, note=note, since_ms=since_ms)

    def record(self, topic: str, partition: int, offset: int) -> Record | None:
        """One record; None if no file has it, for a marker of a transaction as well."""
        for directory in self._directories:
            folder = directory / folder_name(topic, partition)
            with suppress(OSError, DamagedBatch, WireError):
                bases = [base for name in os.listdir(folder) if (base := offset_of(name, LOG_SUFFIX)) is not None]
                base = max((base for base in bases if base <= offset), default=None)
                return None if base is None else _record(folder / f"{base:020d}{LOG_SUFFIX}", offset)
        return None

    def _replica(
        self, directory: Path, folder: Path, topic: str, partition: int, since_ms: int | None
    ) -> ReplicaPositions:
        epochs: list[tuple[int, int]] = []
        with suppress(OSError, CheckpointError):
            path = folder / LEADER_EPOCH_CHECKPOINT
            epochs = decode_epochs(path.read_bytes(), str(path))
        found = self._log(directory, folder)
        start = _offset(directory / LOG_START_CHECKPOINT, topic, partition)
        if found is None:
            note = "its log cannot be read"
            return ReplicaPositions(self._broker, "dead", False, epochs=tuple(epochs), note=note, since_ms=since_ms)
        high_watermark = _offset(directory / HIGH_WATERMARK_CHECKPOINT, topic, partition)
        return ReplicaPositions(
            self._broker,
            "dead",
            False,
            start=max(found.start, start or 0),
            end=found.end,
            high_watermark=None if high_watermark is None else min(high_watermark, found.end),
            synced=_offset(directory / RECOVERY_POINT_CHECKPOINT, topic, partition)
            if found.synced is None
            else found.synced,
            epochs=tuple((epoch, first) for epoch, first in epochs if first < found.end),
            note=found.note,
            since_ms=since_ms,
        )

    def _log(self, directory: Path, folder: Path) -> _Found | None:
        try:
            bases = sorted(base for name in os.listdir(folder) if (base := offset_of(name, LOG_SUFFIX)) is not None)
            if not bases:
                return None
            path = folder / f"{bases[-1]:020d}{LOG_SUFFIX}"
            status = path.stat()
            key = (str(path), status.st_size, status.st_mtime_ns)
            if key not in self._read:
                if len(self._read) >= _CACHED:
                    self._read.clear()
                ledger = _synced(self._directories[0])
                synced = None if ledger is None else ledger.get((status.st_dev, status.st_ino))
                self._read[key] = _walk(path, bases[0], bases[-1], synced)
            return self._read[key]
        except (OSError, ValueError):
            return None


def nodes_below(folder: Path) -> dict[int, tuple[DeadNode, str | None]]:
    """The nodes whose properties lie in a folder, or in one in it, and where each shows its pages."""
    found: dict[int, tuple[DeadNode, str | None]] = {}
    for path in [*folder.glob("server.properties"), *sorted(folder.glob("*/server.properties"))]:
        with suppress(OSError, ValueError):  # PropertiesError is one, and so is an id that is no number
            properties = parse_properties(path.read_text())
            node_id = int(properties.get("node.id") or properties.get("broker.id") or "")
            found[node_id] = DeadNode(node_id, list(log_directories(properties))), properties.get(METRICS_LISTENER)
    return found


def _record(path: Path, offset: int) -> Record | None:
    with closing(SavedFile(path)) as file:
        for batch in scan_headers(file, 0, file.size):
            if batch.header.base_offset <= offset <= batch.header.last_offset and not batch.header.is_control:
                found = decode_batch(file.read(batch.position, batch.header.size_bytes))
                return next((record for record in found if record.offset == offset), None)
    return None


def _synced(directory: Path) -> dict[tuple[int, int], int] | None:
    try:
        return read_ledger(directory / LEDGER_NAME)
    except (OSError, ValueError):
        return None


def _walk(path: Path, first: int, base: int, synced_bytes: int | None) -> _Found:
    """The end of the last segment, and the offset at which what was synced ends. Files before it are synced."""
    end, synced, note = base, base, None
    with closing(SavedFile(path)) as file:
        durable = file.size if synced_bytes is None else min(synced_bytes, file.size)
        position = _indexed(path, min(durable, file.size))
        try:
            for batch in scan_headers(file, position, file.size):
                end = batch.header.next_offset
                if batch.end <= durable:
                    synced = end
        except (DamagedBatch, UnsupportedFormatError):
            note = "behind its end stand bytes that are no whole batch"
    return _Found(first, end, synced if synced_bytes is not None else None, note)


def _indexed(path: Path, most: int) -> int:
    """The last position in the segment's offset index that is not beyond `most`; 0 without an index."""
    index = path.with_suffix(".index")
    try:
        if index.stat().st_size > _INDEX_BYTES_MAX:
            return 0
        data = index.read_bytes()
    except OSError:
        return 0
    found = 0
    for _, position in _INDEX_ENTRY.iter_unpack(data[: len(data) // _INDEX_ENTRY.size * _INDEX_ENTRY.size]):
        if position <= found or position > most:
            if position == 0 and found:
                break
            continue
        found = position
    return found


def _offset(path: Path, topic: str, partition: int) -> int | None:
    try:
        return decode_offsets(path.read_bytes(), str(path)).get((topic, partition))
    except (OSError, CheckpointError):
        return None
