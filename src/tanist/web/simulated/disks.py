"""What the disk of a simulated host says of its replicas, and of its salvage.

It reads the virtual disk past its faults, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, cast

from tanist.log.names import LOG_SUFFIX, folder_name, offset_of
from tanist.log.salvage.manifest import MANIFEST, QUARANTINE, Manifest, ManifestError
from tanist.log.salvage.reading import sound_batches
from tanist.log.scan import read_batch
from tanist.sim.world.clock import EPOCH_MS
from tanist.sim.world.page_cache import Folder, Inode
from tanist.sim.world.still_file import StillFile
from tanist.sim.world.world import Host
from tanist.web.salvage import text_of
from tanist.web.state import Json, SalvageState, plain
from tanist.wire.batch import crc_matches, decode_batch, iterate_headers
from tanist.wire.errors import WireError

RECORDS_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class DiskReplica:
    """A log as a host's disk has it."""

    start: int
    end: int
    synced: int
    """Everything below it survives a loss of power."""
    epochs: tuple[tuple[int, int], ...]


def disk_replica(host: Host, topic: str, partition: int) -> DiskReplica | None:
    """None: the disk has no log of the partition."""
    for directory in host.directories:
        folder = host.disk.find(f"{directory}/{folder_name(topic, partition)}")
        if isinstance(folder, Folder):
            return _read(folder)
    return None


def _read(folder: Folder) -> DiskReplica | None:
    segments = sorted(
        (base, cast(Inode, inode))
        for name, inode in folder.entries.items()
        if (base := offset_of(name, LOG_SUFFIX)) is not None
    )
    if not segments:
        return None
    start = end = synced = segments[0][0]
    epochs: list[tuple[int, int]] = []
    whole = True
    for _, inode in segments:
        view = memoryview(bytes(inode.data))
        try:
            for position, header in iterate_headers(view):
                if not crc_matches(view, position, header.size_bytes):
                    break
                if not epochs or header.partition_leader_epoch > epochs[-1][0]:
                    epochs.append((header.partition_leader_epoch, header.base_offset))
                end = header.next_offset
                whole = whole and position + header.size_bytes <= inode.synced_bytes
                if whole:
                    synced = end
        except WireError:
            break  # a batch that is not whole: recovery truncates the log here
    return DiskReplica(start, end, synced, tuple(epochs))


@dataclass(frozen=True, slots=True)
class Salvaged:
    """An entry of a quarantine, and its records."""

    state: SalvageState
    records: tuple[Json, ...]


def salvage_of(host: Host) -> tuple[Salvaged, ...]:
    """The entries of the host's quarantines, but for one that is being written."""
    found: list[Salvaged] = []
    for directory in host.directories:
        quarantine = host.disk.find(f"{directory}/{QUARANTINE}")
        if not isinstance(quarantine, Folder):
            continue
        for name, entry in sorted(quarantine.entries.items()):
            manifest = entry.entries.get(MANIFEST) if isinstance(entry, Folder) else None
            if isinstance(entry, Folder) and isinstance(manifest, Inode):
                try:
                    decoded = Manifest.decode(bytes(manifest.data), name)
                except ManifestError:
                    continue
                found.append(Salvaged(_state(decoded), tuple(_records(entry, decoded))))
    return tuple(found)


def _state(manifest: Manifest) -> SalvageState:
    return SalvageState(
        manifest.entry_id,
        manifest.topic,
        manifest.partition,
        manifest.broker_id,
        manifest.from_offset,
        manifest.to_offset,
        manifest.why.value,
        manifest.wall_ms - EPOCH_MS,
        manifest.leader_epoch,
        manifest.epochs,
    )


def _records(entry: Folder, manifest: Manifest) -> Iterator[Json]:
    for file in manifest.files:
        inode = entry.entries.get(file.name)
        if not isinstance(inode, Inode):
            continue
        saved = StillFile(file.name, bytes(inode.data))
        for batch in sound_batches(saved, 0, saved.size):
            for record in decode_batch(read_batch(saved, batch)):
                yield {
                    "offset": record.offset,
                    "epoch": batch.header.partition_leader_epoch,
                    "key": text_of(record.key),
                    "value": text_of(record.value),
                }


def salvage_keys(entries: Iterable[Salvaged]) -> dict[str, Json]:
    """All entries, and the first records of each partition, each once: replicas may have dropped the same ones."""
    entries = list(entries)
    records: dict[str, dict[tuple[int, int], Json]] = {}
    for each in entries:
        of = records.setdefault(f"salvaged/{each.state.topic}/{each.state.partition}", {})
        of.update({(record["epoch"], record["offset"]): record for record in each.records})
    found: dict[str, Json] = {
        key: {"records": [of[at] for at in sorted(of)[:RECORDS_MAX]], "count": len(of), "commands": []}
        for key, of in records.items()
    }
    found["salvage"] = [plain(each.state) for each in entries]
    return found
