"""Reading quarantines: which entries there are below a folder, and which records they hold, each once.

Owns the view over all brokers of a cluster, running or not; it changes nothing. Several replicas may have dropped the
same records, so a record is known by topic id, partition, leader epoch and offset: two logs that have the same epoch
at the same offset have the same record there. Batches whose CRC is wrong are passed over.

Batches are indexed before records are read, and only the present batch is decoded, so that a salvage of gigabytes needs
little memory. Owns also which batches stood behind each other, by which `transaction_outcomes` judges transactions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from tanist.log.properties import PropertiesError, log_directories, parse_properties
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
from tanist.runtime.client.transaction_outcomes import ChainedBatch, Place, TransactionOutcome, outcomes
from tanist.wire.batch import BatchHeader, Record, decode_batch
from tanist.wire.control import control_kind
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
    marker: int | None
    """The kind of a control batch; -1 if it cannot be read."""

    @property
    def chained(self) -> ChainedBatch:
        header = self.header
        return ChainedBatch(
            self.epoch, self.base_offset, header.next_offset, header.producer_id, header.is_transactional, self.marker
        )


@dataclass(frozen=True, slots=True)
class SalvagedRecord:
    """A record, and what is known of where it was."""

    entry: Entry
    epoch: int
    header: BatchHeader
    """Of its batch."""
    record: Record
    outcome: TransactionOutcome | None = None
    """Of its transaction; None outside of transactions."""

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
    _index: list[SavedBatch] | None = None
    _batches: list[SavedBatch] | None = None
    _outcomes: dict[Place, TransactionOutcome] | None = None

    @property
    def batches(self) -> list[SavedBatch]:
        """Each batch once."""
        if self._batches is None:
            self._batches = _without_repeats(sorted(self._as_saved))
        return self._batches

    @property
    def outcomes(self) -> dict[Place, TransactionOutcome]:
        """Of each transactional batch of records: how its transaction ended, as far as the salvage has its end."""
        if self._outcomes is None:
            self._outcomes = {}
            if any(batch.header.is_transactional for batch in self._as_saved):
                chains = _chains(self.entries, self._as_saved)
                linked = [[batch.chained for batch in chain] for chain in chains]
                self._outcomes = outcomes(linked, _seams(self.entries, chains))
        return self._outcomes

    @property
    def _as_saved(self) -> list[SavedBatch]:
        """All batches, entry by entry, as they lie in the files."""
        if self._index is None:
            self._index = list(self._indexed())
        return self._index

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
                outcome = self.outcomes.get((batch.epoch, batch.base_offset))
                for record in found:
                    if record.offset >= next_offset:
                        yield SalvagedRecord(entry, batch.epoch, batch.header, record, outcome)
                next_offset = max(next_offset, batch.header.next_offset)
        finally:
            if file is not None:
                file.close()

    def record_at(self, epoch: int, offset: int) -> Record | None:
        """One record; None for a marker of a transaction, and for what cannot be read."""
        for batch in self.batches:
            header = batch.header
            if batch.epoch == epoch and header.base_offset <= offset <= header.last_offset and not header.is_control:
                with closing(self._open(batch.entry_number, batch.file_number)) as file, suppress(WireError):
                    found = decode_batch(file.read(batch.position, header.size_bytes))
                    return next((record for record in found if record.offset == offset), None)
        return None

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
                            _marker(file, position, header) if header.is_control else None,
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
            names = log_directories(parse_properties(properties.read_text()))
        except (OSError, PropertiesError, UnicodeDecodeError):
            continue
        roots += [folder / Path(name).absolute() for name in names]
    found = {
        path.resolve(): path for root in roots for depth in range(_DEPTH_MAX + 1) for path in _at_depth(root, depth)
    }
    return list(found.values())


def _at_depth(root: Path, depth: int) -> list[Path]:
    return [path for path in root.glob("*/" * depth + QUARANTINE) if path.is_dir()]


def _marker(file: SavedFile, position: int, header: BatchHeader) -> int:
    try:
        return control_kind(decode_batch(file.read(position, header.size_bytes))[0])
    except (WireError, IndexError):
        return -1


def _chains(entries: Sequence[Entry], as_saved: Iterable[SavedBatch]) -> list[list[SavedBatch]]:
    """Batches that stood behind each other: behind damage, and where offsets go back, another chain begins."""
    found: list[list[SavedBatch]] = []
    for batch in as_saved:
        if not found or not _adjoin(entries[batch.entry_number].manifest, found[-1][-1], batch):
            found.append([])
        found[-1].append(batch)
    return found


def _adjoin(manifest: Manifest, before: SavedBatch, after: SavedBatch) -> bool:
    if before.entry_number != after.entry_number or after.epoch < before.epoch:
        return False
    end = before.position + before.header.size_bytes
    if before.file_number != after.file_number:
        whole = end == manifest.files[before.file_number].size_bytes and after.file_number == before.file_number + 1
        end = 0 if whole else -1
    # Offsets that a compacted log leaves out are no gap, if no bytes are left out; behind damage they may be.
    next_offset = before.header.next_offset
    exact = manifest.why is SalvageReason.RECOVERY_CUT
    return after.position == end and (
        after.base_offset == next_offset or (after.base_offset > next_offset and not exact)
    )


def _seams(entries: Sequence[Entry], chains: Iterable[Sequence[SavedBatch]]) -> Iterator[tuple[Place, Place]]:
    """Where entries meet that a replica cut off one after the other for the same leader: it had one log until then."""
    begins: dict[tuple[int, int, int], Place] = {}
    ends: dict[tuple[int, int, int], Place] = {}
    for chain in chains:
        manifest = entries[chain[0].entry_number].manifest
        if manifest.leader_epoch < 0:
            continue
        log = manifest.broker_id, manifest.leader_epoch
        first, last = chain[0], chain[-1]
        if first.base_offset == manifest.from_offset:
            begins[*log, manifest.from_offset] = first.epoch, first.base_offset
        if last.header.next_offset == manifest.to_offset:
            ends[*log, manifest.to_offset] = last.epoch, last.base_offset
    for where, end in ends.items():
        if where in begins and begins[where][0] >= end[0]:
            yield end, begins[where]


def _without_repeats(batches: Iterable[SavedBatch]) -> list[SavedBatch]:
    kept: list[SavedBatch] = []
    for batch in batches:
        last = kept[-1] if kept else None
        if last is None or last.epoch != batch.epoch or batch.header.last_offset > last.header.last_offset:
            kept.append(batch)
    return kept
