"""The result of an audit."""

from __future__ import annotations

from dataclasses import dataclass, field

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs.audit.clients import HighWatermarkPoint
from tanist.spark.jobs.audit.facts import EpochRange, PartitionFacts
from tanist.spark.jobs.audit.findings import Counts, Finding
from tanist.spark.jobs.audit.logs import Known
from tanist.spark.jobs.audit.metadata import NOTHING, Metadata
from tanist.spark.jobs.audit.transactions import OpenTransaction


@dataclass(slots=True)
class AuditResult:
    """`findings` are the first of each kind; `counts` are of all."""

    counts: Counts = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    epoch_ranges: list[EpochRange] = field(default_factory=list)
    facts: dict[TopicPartition, PartitionFacts] = field(default_factory=dict)
    known: Known = field(default_factory=Known)
    metadata: Metadata = NOTHING
    high_watermarks: list[HighWatermarkPoint] = field(default_factory=list)
    records: int = 0
    """In all replicas."""
    has_history: bool = False
    """Without a history, replicas that agree may all have lost the same."""
    sends: int = 0
    expired: int = 0
    """Of those, the ones from before the log's start: retention or a deletion took them, and nobody judges them."""
    polled: int = 0
    open_transactions: list[OpenTransaction] = field(default_factory=list)
    """At the ends of the leaders' logs: no findings, for they may be under way."""
    run_id: str | None = None
    """Of its rows in the table of findings; None without one."""
    plan: dict[str, str] = field(default_factory=dict)
    """Which plan each part took, and why."""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        return not self.counts

    @property
    def replicas(self) -> int:
        """How many there are, with records or without."""
        known = {(*place, replica) for place, replicas in self.known.replicas.items() for replica in replicas}
        return len(known | {(held.topic, held.partition, held.replica) for held in self.epoch_ranges})

    @property
    def begun(self) -> dict[TopicPartition, int]:
        """Partitions whose logs begin above offset 0, and where."""
        return {place: facts.start for place, facts in self.facts.items() if facts.start > 0}

    def count(self, kind: Anomaly) -> int:
        return sum(count for (each, _, _), count in self.counts.items() if each is kind)

    def findings_of(self, kind: Anomaly) -> list[Finding]:
        return [each for each in self.findings if each.kind is kind]
