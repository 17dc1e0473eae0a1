"""A summary of the salvage of a cluster's partitions, for commands that show the cluster and were not asked for it.

An election may be clean by the rules and lose records all the same: those that a follower had and the leader lost, for
instance with its page cache. Nobody counts them but the follower, when it cuts them off and saves them. So what was
saved is the news of a loss.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from tanist.log.salvage.manifest import SalvageReason
from tanist.runtime.client.salvaged import PartitionSalvage, by_partition, find_entries

_READ_BYTES_MAX = 64 << 20
"""Of a partition. Counting reads all of it; what is larger is estimated by its offsets."""


@dataclass(frozen=True, slots=True)
class SalvageNews:
    """The saved records of one partition."""

    topic: str
    topic_id: UUID
    partition: int
    brokers: tuple[int, ...]
    """The brokers whose logs were cut."""
    records: int
    """Each once, however many brokers have saved it."""
    exact: bool
    why: SalvageReason
    """The last time."""
    leader_epoch: int
    """Of the leader that did not have them, the last time; -1: they stood behind damage."""
    wall_ms: int
    """When, the last time."""


def salvage_news(folder: Path, topics: Collection[str] | None = None) -> list[SalvageNews]:
    """Of all topics, or of those named: by topic and partition. Nothing if there is no such folder."""
    entries, _ = find_entries(folder) if folder.is_dir() else ([], [])
    wanted = [entry for entry in entries if topics is None or entry.manifest.topic in topics]
    return [_news(salvage) for salvage in by_partition(wanted)]


def _news(salvage: PartitionSalvage) -> SalvageNews:
    manifests = [entry.manifest for entry in salvage.entries]
    last = max(manifests, key=lambda manifest: manifest.wall_ms)
    records, exact = _count(salvage)
    return SalvageNews(
        salvage.topic,
        salvage.topic_id,
        salvage.partition,
        tuple(sorted({manifest.broker_id for manifest in manifests})),
        records,
        exact,
        last.why,
        -1 if last.why is SalvageReason.RECOVERY_CUT else last.leader_epoch,
        last.wall_ms,
    )


def _count(salvage: PartitionSalvage) -> tuple[int, bool]:
    if sum(entry.manifest.size_bytes for entry in salvage.entries) <= _READ_BYTES_MAX:
        try:
            return salvage.record_count, True
        except OSError:
            pass  # its time has passed, and it has just been removed
    spans = (entry.manifest.to_offset - entry.manifest.from_offset for entry in salvage.entries)
    return max(0, *spans), False
