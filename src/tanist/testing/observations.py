"""What a test can see of a cluster: the state of a partition, its records, what replicas have dropped.

Frozen values, read when they are asked for. This module asks; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tanist.client.positions import EARLIEST, LATEST
from tanist.runtime.client.admin import describe_topics
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.node_pages import NoAnswer, ask
from tanist.runtime.client.records import list_offset, read
from tanist.runtime.client.salvaged import by_partition, find_entries
from tanist.runtime.cluster.cluster_file import ClusterFile
from tanist.runtime.cluster.layout import metrics_address
from tanist.wire.batch import Record

_OFFSETS_S = 3.0


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition as the cluster describes it now. None: the cluster does not say."""

    topic: str
    partition: int
    leader: int | None
    """None: no broker leads."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None
    """Eligible leader replicas (KIP-966)."""
    last_known_elr: tuple[int, ...] | None
    offline: tuple[int, ...]
    recovering: bool | None
    """Whether the leader was elected uncleanly and has not yet brought the partition back."""
    last_unclean_epoch: int
    """The leader epoch that last began with an unclean election; -1: none."""
    log_start_offset: int | None
    high_watermark: int | None
    """Consumers read up to here."""
    log_end_offsets: Mapping[int, int | None]
    """Of each replica, as its own node has it; None: the node does not answer."""

    @property
    def followers(self) -> tuple[int, ...]:
        """The replicas that do not lead."""
        return tuple(replica for replica in self.replicas if replica != self.leader)

    def __str__(self) -> str:
        says = [
            f"leader {'none' if self.leader is None else self.leader} (epoch {self.leader_epoch})",
            f"ISR {members(self.isr)}",
        ]
        if self.elr:
            says.append(f"ELR {members(self.elr)}")
        if self.last_known_elr:
            says.append(f"LastKnownElr {members(self.last_known_elr)}")
        if self.recovering:
            says.append("recovering")
        if self.high_watermark is not None:
            says.append(f"offsets {self.log_start_offset} to {self.high_watermark}")
        if any(end is not None for end in self.log_end_offsets.values()):
            ends = [f"{broker}: {'?' if end is None else end}" for broker, end in self.log_end_offsets.items()]
            says.append(f"log ends {{{', '.join(ends)}}}")
        return f"{self.topic}-{self.partition}: {', '.join(says)}"


@dataclass(frozen=True, slots=True)
class SalvagedRecord:
    """A record that a replica has dropped."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class SalvageEntry:
    """What one replica has dropped at one time, and saved before."""

    entry_id: str
    topic: str
    partition: int
    broker: int
    why: str
    leader_epoch: int
    """Of the leader that did not have the records; -1: they stood behind damage."""
    records: tuple[SalvagedRecord, ...]
    folder: Path


def log_ends(cluster: ClusterFile, topic: str, partition: int) -> dict[int, int]:
    """The log end offset of each replica whose node answers."""
    found = {}
    for node in cluster.brokers:
        address = metrics_address(cluster, node)
        if address is None or not node.alive or node.paused:
            continue
        with suppress(NoAnswer):
            for row in ask(address, topic, partition)["replicas"]:
                if row["log_end_offset"] is not None:
                    found[node.node_id] = row["log_end_offset"]
    return found


def partition_state(
    client: Client, topic: str, partition: int, recovering: bool | None, log_ends: Mapping[int, int]
) -> PartitionState:
    """One partition. `KafkaError` if there is none."""
    (described,) = describe_topics(client, [topic])
    for each in described.partitions:
        if each.partition == partition:
            break
    else:
        raise KafkaError(3, f"{topic} has no partition {partition}", final=True)
    start = end = None
    if each.leader >= 0:
        start, end = _offset(client, topic, partition, EARLIEST), _offset(client, topic, partition, LATEST)
    return PartitionState(
        topic,
        partition,
        None if each.leader < 0 else each.leader,
        each.leader_epoch,
        each.replicas,
        each.isr,
        each.elr,
        each.last_known_elr,
        each.offline,
        recovering,
        each.last_unclean_epoch,
        start,
        end,
        {broker: log_ends.get(broker) for broker in each.replicas},
    )


def _offset(client: Client, topic: str, partition: int, which: int) -> int | None:
    patience_s, client.timeout_s = client.timeout_s, min(client.timeout_s, _OFFSETS_S)
    try:
        return list_offset(client, topic, partition, which)
    except (KafkaError, Unreachable):
        return None  # the leader is paused, cut off, or has just gone
    finally:
        client.timeout_s = patience_s


def records(client: Client, topic: str, partition: int) -> Iterator[Record]:
    """All records of a partition up to the high watermark."""
    start = list_offset(client, topic, partition, EARLIEST)
    yield from read(client, topic, partition, start, list_offset(client, topic, partition, LATEST))


def salvage(data: Path, topic: str | None) -> list[SalvageEntry]:
    """Everything in the quarantines of a cluster's nodes, the oldest first."""
    entries, _ = find_entries(data)
    found = []
    for entry in entries:
        manifest = entry.manifest
        if topic not in (None, manifest.topic):
            continue
        (partition,) = by_partition([entry])
        saved = tuple(
            SalvagedRecord(
                manifest.topic,
                manifest.partition,
                each.offset,
                each.epoch,
                each.record.timestamp,
                each.record.key,
                each.record.value,
                tuple(each.record.headers),
            )
            for each in partition.records()
        )
        found.append(
            SalvageEntry(
                entry.entry_id,
                manifest.topic,
                manifest.partition,
                manifest.broker_id,
                manifest.why.value,
                manifest.leader_epoch,
                saved,
                entry.folder,
            )
        )
    return found


def members(brokers: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, brokers)) + "}"
