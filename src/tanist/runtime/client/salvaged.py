"""Reading quarantines: which entries there are below a folder, and which records they hold, each once.

Owns the view over all brokers of a cluster, running or not; it changes nothing. Several replicas may have dropped the
same records, so a record is known by topic id, partition, leader epoch and offset: two logs that have the same epoch
at the same offset have the same record there. Batches whose CRC is wrong are passed over.

Batches are indexed before records are read, and only the present batch is decoded, so that a salvage of gigabytes needs
little memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from tanist.log.properties import PropertiesError, parse_properties
from tanist.log.salvage.manifest import (
    MANIFEST,
    QUARANTINE,
    REMOVED_SUFFIX,
    Manifest,
    ManifestError,
    SalvageReason,
    is_entry_id,
)
from tanist.log.salvage.reading import sound_batches
from tanist.wire.batch import BatchHeader, Record, decode_batch
from tanist.wire.errors import WireError
from tanist.wire.primitives import Buffer

_DEPTH_MAX = 3
"""From a cluster's folder to its log directories: `node-1/data`, and one more for those who nest."""


class SavedFile:
    """The `File` port, for reading only."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = self.synced = os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._fd, length, offset)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        raise OSError(f"{self.path} is open for reading")

    def truncate(self, size: int) -> None:
        raise OSError(f"{self.path} is open for reading")

    def close(self) -> None:
        os.close(self._fd)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of one broker's quarantine."""

    folder: Path
    manifest: Manifest

    @property
    def entry_id(self) -> str:
        return self.manifest.entry_id

    def remove(self) -> None:
        """For good. Renamed first: a node that starts meanwhile sees it whole, or finishes the removal."""
        removed = self.folder.with_name(self.folder.name + REMOVED_SUFFIX)
        self.folder.rename(removed)
        for file in removed.iterdir():
            file.unlink()
        removed.rmdir()


class SavedBatch(NamedTuple):
    """Where a sound batch lies. Sorted as the log was: by epoch, then offset; of equals, the fullest first."""

    epoch: int
    base_offset: int
    fewer_records: int
    """Minus the number of its records."""
    entry_number: int
    file_number: int
    position: int
    header: BatchHeader


@dataclass(frozen=True, slots=True)
class SalvagedRecord:
    """A record, and what is known of where it was."""

    entry: Entry
    epoch: int
    header: BatchHeader
    """Of its batch."""
    record: Record

    @property
    def offset(self) -> int:
        return self.record.offset


@dataclass(slots=True)
class PartitionSalvage:
    """Everything that was saved of one partition, whichever replicas did."""

    topic: str
    topic_id: UUID
    partition: int
    entries: list[Entry] = field(default_factory=list)
    unreadable: int = 0
    """Batches whose CRC is right and whose records cannot be decoded, as far as they were read."""
    _batches: list[SavedBatch] | None = None

    @property
    def batches(self) -> list[SavedBatch]:
        """Each batch once."""
        if self._batches is None:
            self._batches = _without_repeats(sorted(self._indexed()))
        return self._batches

    @property
    def record_count(self) -> int:
        """Of what is not a control batch, by the headers."""
        return sum(batch.header.record_count for batch in self.batches if not batch.header.is_control)

    @property
    def control_count(self) -> int:
        return sum(batch.header.is_control for batch in self.batches)

    def records(self) -> Iterator[SalvagedRecord]:
        """In the order of epochs, then offsets; without control records."""
        self.unreadable = 0
        opened: tuple[int, int] | None = None
        file: SavedFile | None = None
        epoch, next_offset = -2, 0
        try:
            for batch in self.batches:
                if batch.header.is_control:
                    continue
                place = (batch.entry_number, batch.file_number)
                if file is None or place != opened:
                    if file is not None:
                        file.close()
                    file, opened = self._open(*place), place
                entry = self.entries[batch.entry_number]
                try:
                    found = decode_batch(file.read(batch.position, batch.header.size_bytes))
                except WireError:
                    self.unreadable += 1
                    continue
                if batch.epoch != epoch:
                    epoch, next_offset = batch.epoch, 0
                for record in found:
                    if record.offset >= next_offset:
                        yield SalvagedRecord(entry, batch.epoch, batch.header, record)
                next_offset = max(next_offset, batch.header.next_offset)
        finally:
            if file is not None:
                file.close()

    def _indexed(self) -> Iterator[SavedBatch]:
        for entry_number, entry in enumerate(self.entries):
            manifest = entry.manifest
            # Records that were cut behind damage need not be in order.
            least = 0 if manifest.why is SalvageReason.RECOVERY_CUT else manifest.from_offset
            for file_number in range(len(manifest.files)):
                with closing(self._open(entry_number, file_number)) as file:
                    for position, header in sound_batches(file, 0, file.size, least):
                        yield SavedBatch(
                            header.leader_epoch,
                            header.base_offset,
                            -header.record_count,
                            entry_number,
                            file_number,
                            position,
                            header,
                        )

    def _open(self, entry_number: int, file_number: int) -> SavedFile:
        entry = self.entries[entry_number]
        return SavedFile(entry.folder / entry.manifest.files[file_number].name)


def find_entries(folder: Path) -> tuple[list[Entry], list[str]]:
    """The entries of all quarantines below `folder`, the oldest first; and what is wrong with others.

    `folder` may be that of a cluster, of a node, a log directory, or a quarantine itself.
    """
    entries: dict[Path, Entry] = {}
    complaints = []
    for quarantine in _quarantines(folder):
        for path in sorted(quarantine.iterdir()):
            if not is_entry_id(path.name):
                continue
            try:
                manifest = Manifest.decode((path / MANIFEST).read_bytes(), str(path / MANIFEST))
            except FileNotFoundError:
                if path.exists():  # else it was removed this moment
                    complaints.append(f"{path} has no {MANIFEST}")
                continue
            except ManifestError as error:
                complaints.append(str(error))
                continue
            entries[path.resolve()] = Entry(path, manifest)
    return sorted(entries.values(), key=lambda entry: (entry.manifest.wall_ms, entry.entry_id)), complaints


def by_partition(entries: Iterable[Entry]) -> list[PartitionSalvage]:
    """Entries that belong together, in the order of topics and partitions."""
    found: dict[tuple[str, UUID, int], PartitionSalvage] = {}
    for entry in entries:
        manifest = entry.manifest
        key = (manifest.topic, manifest.topic_id, manifest.partition)
        found.setdefault(key, PartitionSalvage(*key)).entries.append(entry)
    return [found[key] for key in sorted(found)]


def _quarantines(folder: Path) -> list[Path]:
    if folder.name == QUARANTINE:
        return [folder]
    roots = [folder]
    for properties in [*folder.glob("server.properties"), *folder.glob("*/server.properties")]:
        # A node's log directories may be elsewhere.
        try:
            named = parse_properties(properties.read_text()).get("log.dirs", "")
        except (OSError, PropertiesError, UnicodeDecodeError):
            continue
        roots += [Path(name.strip()) for name in named.split(",") if name.strip()]
    found = {
        path.resolve(): path for root in roots for depth in range(_DEPTH_MAX + 1) for path in _at_depth(root, depth)
    }
    return list(found.values())


def _at_depth(root: Path, depth: int) -> list[Path]:
    return [path for path in root.glob("*/" * depth + QUARANTINE) if path.is_dir()]


def _without_repeats(batches: Iterable[SavedBatch]) -> list[SavedBatch]:
    kept: list[SavedBatch] = []
    for batch in batches:
        last = kept[-1] if kept else None
        if last is None or last.epoch != batch.epoch or batch.header.last_offset > last.header.last_offset:
            kept.append(batch)
    return kept
