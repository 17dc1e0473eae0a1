"""Stage: the facts by which an audit judges each partition. Pure: it reads neither logs nor histories.

Owns the choice of the *reference*, the replica whose log the others and the clients are held against: the leader's, by
the metadata log; without that, of the replica whose log ends in the greatest epoch, at the greatest offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tanist.client.topic_partition import TopicPartition
from tanist.spark.jobs.audit.log_files import Known
from tanist.spark.jobs.audit.metadata import Metadata
from tanist.spark.jobs.audit.sums import BUCKET_OFFSETS


@dataclass(frozen=True, slots=True)
class EpochRange:
    """The records of one leader epoch that one replica holds."""

    topic: str
    partition: int
    replica: int
    epoch: int
    first_offset: int
    last_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The facts of one partition."""

    replicas: tuple[int, ...]
    reference: int
    """The replica whose log the others are held against: the leader's."""
    start: int
    """The first offset that the reference has."""
    high_watermark: int
    starts: Mapping[int, int]
    """Where each replica's log begins; one without records begins where the partition does."""
    judged: bool
    """Whether holes are wrong; in a compacted log they are not."""


Facts: TypeAlias = Mapping[TopicPartition, PartitionFacts]


def partition_facts(
    known: Known, metadata: Metadata, epoch_ranges: Sequence[EpochRange]
) -> dict[TopicPartition, PartitionFacts]:
    """Of each partition that has a replica here. A log without a record counts: a leader may have lost all it had."""
    by_partition: dict[TopicPartition, list[EpochRange]] = {place: [] for place in known.replicas}
    for held in epoch_ranges:
        by_partition.setdefault((held.topic, held.partition), []).append(held)
    return {place: _facts_of(place, ranges, known, metadata) for place, ranges in sorted(by_partition.items())}


def _facts_of(place: TopicPartition, ranges: Sequence[EpochRange], known: Known, metadata: Metadata) -> PartitionFacts:
    holders = {held.replica for held in ranges} | set(known.replicas.get(place, ()))
    leader = metadata.leader(place)
    if leader is not None and leader in holders:
        reference = leader
    else:
        reference = most_advanced(ranges) if ranges else min(holders)
    judged = place[0] not in metadata.compacted

    def start_of(replica: int, otherwise: int) -> int:
        """Where the log begins, by its files; in a compacted one, and where no file is known, at its first record."""
        first = min((held.first_offset for held in ranges if held.replica == replica), default=None)
        by_files = known.starts.get((*place, replica))
        if first is not None and (by_files is None or not judged):
            return first
        return otherwise if by_files is None else by_files

    start = start_of(reference, 0)
    end = max((held.last_offset + 1 for held in ranges if held.replica == reference), default=start)
    replicas = metadata.replicas(place) or known.replicas.get(place, ()) or tuple(sorted(holders))
    return PartitionFacts(
        replicas, reference, start, known.high_watermarks.get(place, end),
        {replica: start_of(replica, start) for replica in replicas}, judged,
    )  # fmt: skip


def most_advanced(ranges: Sequence[EpochRange]) -> int:
    """The replica whose last record has the greatest epoch, then the greatest offset."""
    ends: dict[int, EpochRange] = {}
    for held in ranges:
        if held.replica not in ends or held.last_offset > ends[held.replica].last_offset:
            ends[held.replica] = held
    return max(ends.values(), key=lambda held: (held.epoch, held.last_offset, -held.replica)).replica


def buckets_of(facts: Mapping[TopicPartition, PartitionFacts]) -> int:
    """How many buckets of offsets there should be below the high watermarks."""
    return sum(
        (each.high_watermark - 1) // BUCKET_OFFSETS - each.start // BUCKET_OFFSETS + 1
        for each in facts.values()
        if each.high_watermark > each.start
    )
