"""Stage: which decision of the controllers explains a finding. Pure, and small enough for workers to have.

Owns the choice of the leader epoch whose end matters: of a lost record that a replica saved, the epoch of the leader
for which it was dropped; else the least epoch of the finding, or that of the reference's last record before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import Anomaly
from tanist.log.salvage.manifest import Manifest
from tanist.spark.jobs.audit.facts import EpochRange, PartitionFacts
from tanist.spark.jobs.audit.findings import Finding
from tanist.spark.jobs.audit.metadata import Metadata


@dataclass(frozen=True, slots=True)
class Explanations:
    metadata: Metadata
    dropped: Mapping[TopicPartition, Sequence[tuple[int, int, int]]]
    """Offsets [first, end) that a replica saved as it dropped them, and the epoch of the leader that lacked them."""
    reference_epochs: Mapping[TopicPartition, Sequence[tuple[int, int]]]
    """Where each epoch begins in the reference's log, and the epoch."""

    def of(self, finding: Finding) -> str | None:
        return self.explain(
            finding.kind.value, finding.topic, finding.partition, finding.first_offset, list(finding.epochs),
            list(finding.replicas),
        )  # fmt: skip

    def explain(
        self,
        kind: str,
        topic: str,
        partition: int | None,
        offset: int | None,
        epochs: list[int] | None,
        replicas: list[int] | None,
    ) -> str | None:
        """The metadata change that explains a finding, from its columns; None if none does."""
        if partition is None:
            return None
        place = (topic, partition)
        if kind == Anomaly.MISSING.value:
            return self.metadata.explain(place, None, replicas or ())
        if kind == Anomaly.LOST_WRITE.value and offset is not None:
            # The leader for which a replica dropped the record is known, if the record was saved.
            since = [epoch for first, end, epoch in self.dropped.get(place, ()) if first <= offset < end]
            election = self.metadata.of_epoch(place, max(since)) if since else None
            if election is not None:
                return election
        epoch = min(epochs) if epochs and kind != Anomaly.READ_LOST.value else self._epoch_before(place, offset)
        return self.metadata.explain(place, epoch, replicas or ())

    def _epoch_before(self, place: TopicPartition, offset: int | None) -> int | None:
        """The epoch of the reference's last record before an offset."""
        if offset is None:
            return None
        return max((epoch for first, epoch in self.reference_epochs.get(place, ()) if first < offset), default=-1)


def explanations(
    metadata: Metadata,
    salvage: Iterable[Manifest],
    epoch_ranges: Iterable[EpochRange],
    facts: Mapping[TopicPartition, PartitionFacts],
    concerned: Collection[TopicPartition],
) -> Explanations:
    """`concerned` are the partitions that have findings: workers need the metadata of no others."""
    dropped: dict[TopicPartition, list[tuple[int, int, int]]] = {}
    for entry in salvage:
        dropped.setdefault((entry.topic, entry.partition), []).append(
            (entry.from_offset, entry.to_offset, entry.leader_epoch)
        )
    epochs: dict[TopicPartition, list[tuple[int, int]]] = {}
    for held in epoch_ranges:
        place = (held.topic, held.partition)
        if place in facts and held.replica == facts[place].reference:
            epochs.setdefault(place, []).append((held.first_offset, held.epoch))
    changes = {place: metadata.changes.get(place, ()) for place in concerned}
    return Explanations(replace(metadata, changes=changes), dropped, epochs)
