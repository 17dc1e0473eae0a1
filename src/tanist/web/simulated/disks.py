"""What the disk of a simulated host says of its replicas while no process has them open, and of its salvage.

It reads the virtual disk past its faults, and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from tanist.log.names import LOG_SUFFIX, folder_name, offset_of
from tanist.log.salvage.manifest import MANIFEST, QUARANTINE, Manifest, ManifestError
from tanist.sim.world.clock import EPOCH_MS
from tanist.sim.world.page_cache import Folder, Inode
from tanist.sim.world.world import Host
from tanist.web.state import Json, SalvageState, plain
from tanist.wire.batch import crc_matches, iterate_headers
from tanist.wire.errors import WireError


@dataclass(frozen=True, slots=True)
class DeadReplica:
    """A log on the disk of a host that is down."""

    start: int
    end: int
    synced: int
    """Everything below it survives a loss of power."""
    epochs: tuple[tuple[int, int], ...]


def dead_replica(host: Host, topic: str, partition: int) -> DeadReplica | None:
    """None: the disk has no log of the partition."""
    for directory in host.directories:
        folder = host.disk.find(f"{directory}/{folder_name(topic, partition)}")
        if isinstance(folder, Folder):
            return _read(folder)
    return None


def _read(folder: Folder) -> DeadReplica | None:
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
    return DeadReplica(start, end, synced, tuple(epochs))


def salvage_of(host: Host) -> list[Json]:
    """The entries of the host's quarantines."""
    found: list[Json] = []
    for directory in host.directories:
        quarantine = host.disk.find(f"{directory}/{QUARANTINE}")
        if not isinstance(quarantine, Folder):
            continue
        for name, entry in sorted(quarantine.entries.items()):
            manifest = entry.entries.get(MANIFEST) if isinstance(entry, Folder) else None
            if isinstance(manifest, Inode):
                try:
                    decoded = Manifest.decode(bytes(manifest.data), name)
                except ManifestError:
                    continue  # it is being written
                found.append(
                    plain(
                        SalvageState(
                            decoded.entry_id,
                            decoded.topic,
                            decoded.partition,
                            decoded.broker_id,
                            decoded.from_offset,
                            decoded.to_offset,
                            decoded.why.value,
                            decoded.wall_ms - EPOCH_MS,
                            decoded.leader_epoch,
                            decoded.epochs,
                        )
                    )
                )
    return found
