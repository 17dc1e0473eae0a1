"""The result of an audit, and what it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs.audit.facts import EpochRange, PartitionFacts
from tanist.spark.jobs.audit.findings import Counts, Finding
from tanist.spark.jobs.audit.log_files import Known
from tanist.spark.jobs.audit.metadata import NOTHING, Metadata


@dataclass(frozen=True, slots=True)
class HighWatermarkPoint:
    """The greatest offset that clients had seen up to a moment: the high watermark was at least one above."""

    topic: str
    partition: int
    at_ns: int
    offset: int


@dataclass(frozen=True, slots=True)
class ClientCounts:
    sends: int
    """Acknowledged."""
    expired: int
    """Of those, the ones from before the log's start."""
    polled: int
    partitions: frozenset[str]
    """As histories name them: "orders-3"."""
    unplaced: int = 0
    """Acknowledged sends whose offsets nobody knows; they are not in `sends`."""
    first_ns: int | None = None
    last_ns: int | None = None

    @staticmethod
    def of(rows: Iterable[Mapping[str, Any]]) -> ClientCounts:
        """Of place, placed, claims, sends, expired, polled, first_ns, last_ns: with offsets and without, by place."""
        found = list(rows)
        placed = [row for row in found if row["placed"]]
        times = [row[name] for row in placed for name in ("first_ns", "last_ns") if row[name] is not None]
        sends, expired, polled = (sum(row[name] for row in placed) for name in ("sends", "expired", "polled"))
        return ClientCounts(
            sends, expired, polled,
            frozenset(row["place"] for row in placed),
            sum(row["claims"] for row in found if not row["placed"]),
            min(times, default=None), max(times, default=None),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction without a marker at the end of a log."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    records: int

    def __str__(self) -> str:
        same = self.first_offset == self.last_offset
        offsets = f"offset {self.first_offset}" if same else f"offsets {self.first_offset}..{self.last_offset}"
        return f"{self.topic}-{self.partition} {offsets}, producer {self.producer_id} epoch {self.producer_epoch}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


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
