"""The anomalies of a history, each with its count and its smallest evidence.

Owns the names and the counting. Jepsen's names where Jepsen has the anomaly; docs/history.md has the definitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Anomaly(Enum):
    """In the order of the report: the worst first."""

    LOST_WRITE = "lost-write"
    INCONSISTENT_OFFSETS = "inconsistent-offsets"
    DUPLICATE = "duplicate"
    TORN = "torn"
    G1A = "G1a"
    PRECOMMITTED_READ = "precommitted-read"
    G1C = "G1c"
    PHANTOM = "phantom"
    REALTIME_ORDER = "realtime-order"
    STALE_END = "stale-end"
    NONMONOTONIC_SEND = "nonmonotonic-send"
    INT_NONMONOTONIC_SEND = "int-nonmonotonic-send"
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    INT_NONMONOTONIC_POLL = "int-nonmonotonic-poll"
    POLL_SKIP = "poll-skip"
    INT_POLL_SKIP = "int-poll-skip"
    UNSEEN = "unseen"
    G0 = "G0"
    INT_SEND_SKIP = "int-send-skip"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Anomaly.LOST_WRITE: "acknowledged, and not there where somebody looked for it later",
    Anomaly.INCONSISTENT_OFFSETS: "one offset with different values",
    Anomaly.DUPLICATE: "one value at different offsets",
    Anomaly.G1A: "polled, though its send failed",
    Anomaly.TORN: "a transaction with records that readers of committed records got, and others that they did not",
    Anomaly.PRECOMMITTED_READ: "polled as committed, before its transaction was",
    Anomaly.G1C: "transactions that read each other's records, in a cycle",
    Anomaly.PHANTOM: "polled, and nobody sent it",
    Anomaly.REALTIME_ORDER: "sent after another was acknowledged, and stands before it",
    Anomaly.STALE_END: "an end that does not count what had been acknowledged before it was asked for",
    Anomaly.NONMONOTONIC_SEND: "stands before what its producer sent earlier",
    Anomaly.INT_NONMONOTONIC_SEND: "stands before what its transaction sent earlier",
    Anomaly.NONMONOTONIC_POLL: "a consumer went back",
    Anomaly.INT_NONMONOTONIC_POLL: "a consumer went back within a transaction",
    Anomaly.POLL_SKIP: "a consumer left out what is there",
    Anomaly.INT_POLL_SKIP: "a consumer left out what is there, within a transaction",
    Anomaly.UNSEEN: "acknowledged and never polled, though somebody polled until nothing came",
    Anomaly.G0: "transactions whose records stand before each other's, in a cycle",
    Anomaly.INT_SEND_SKIP: "another record stands between those of one transaction",
}


@dataclass(frozen=True, slots=True)
class Cite:
    """One operation of the evidence: its lines, and the record in question."""

    lines: tuple[int, ...]
    """The line of its invocation, if it has one, and of its completion."""
    partition: str
    offset: int | None = None
    """The offset of the record in question; None for the whole operation."""
    sent: bool = False
    """It is cited for its sends to the partition, and has all of its lines."""


Evidence = tuple[Cite, ...]


def _size(evidence: Evidence, summary: str) -> tuple[int, int, list[int], str]:
    """Fewer operations first, then those that complete earlier in the file; the rest makes the order deterministic."""
    lines = sorted({line for cite in evidence for line in cite.lines})
    return len({cite.lines for cite in evidence}), lines[-1], lines, summary


@dataclass(slots=True)
class Found:
    """One kind of anomaly."""

    anomaly: Anomaly
    partitions: dict[str, int] = field(default_factory=dict)
    """The count in each partition that has it."""
    summary: str = ""
    """The smallest case as text."""
    evidence: Evidence = ()

    @property
    def count(self) -> int:
        return sum(self.partitions.values())


class Tally:
    """Counts findings, and keeps the smallest case of each kind."""

    def __init__(self) -> None:
        self._found: dict[Anomaly, Found] = {}
        self._expected: dict[Anomaly, Found] = {}

    def add(self, anomaly: Anomaly, partition: str, summary: str, *evidence: Cite, expected: bool = False) -> None:
        """`expected`: Kafka does not promise that this case cannot be."""
        every = self._expected if expected else self._found
        found = every.get(anomaly)
        if found is None:
            found = every[anomaly] = Found(anomaly)
        found.partitions[partition] = found.partitions.get(partition, 0) + 1
        evidence, summary = tuple(dict.fromkeys(evidence)), f"{partition}: {summary}"
        if not found.evidence or _size(evidence, summary) < _size(found.evidence, found.summary):
            found.summary, found.evidence = summary, evidence

    def found(self) -> tuple[Found, ...]:
        return tuple(self._found[anomaly] for anomaly in Anomaly if anomaly in self._found)

    def expected(self) -> tuple[Found, ...]:
        """The cases that Kafka's model allows."""
        return tuple(self._expected[anomaly] for anomaly in Anomaly if anomaly in self._expected)
