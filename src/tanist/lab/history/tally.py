"""The anomalies of a history, each with its count and its smallest evidence.

Owns the counting; `tanist.lab.anomalies` has the names and the definitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tanist.lab.anomalies import OF_HISTORIES, Anomaly


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


Citations = tuple[Cite, ...]


def _size(citations: Citations, summary: str) -> tuple[int, int, list[int], str]:
    """Fewer operations first, then those that complete earlier in the file; the rest makes the order deterministic."""
    lines = sorted({line for cite in citations for line in cite.lines})
    return len({cite.lines for cite in citations}), lines[-1], lines, summary


@dataclass(slots=True)
class Finding:
    """One kind of anomaly."""

    anomaly: Anomaly
    partitions: dict[str, int] = field(default_factory=dict)
    """The count in each partition that has it."""
    summary: str = ""
    """The smallest case as text."""
    citations: Citations = ()

    @property
    def count(self) -> int:
        return sum(self.partitions.values())


class Tally:
    """Counts findings, and keeps the smallest case of each kind."""

    def __init__(self) -> None:
        self._findings: dict[Anomaly, Finding] = {}
        self._expected: dict[Anomaly, Finding] = {}

    def add(self, anomaly: Anomaly, partition: str, summary: str, *citations: Cite, expected: bool = False) -> None:
        """`expected`: Kafka does not promise that this case cannot be."""
        every = self._expected if expected else self._findings
        finding = every.get(anomaly)
        if finding is None:
            finding = every[anomaly] = Finding(anomaly)
        finding.partitions[partition] = finding.partitions.get(partition, 0) + 1
        citations, summary = tuple(dict.fromkeys(citations)), f"{partition}: {summary}"
        if not finding.citations or _size(citations, summary) < _size(finding.citations, finding.summary):
            finding.summary, finding.citations = summary, citations

    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings[anomaly] for anomaly in OF_HISTORIES if anomaly in self._findings)

    def expected(self) -> tuple[Finding, ...]:
        """The cases that Kafka's model allows."""
        return tuple(self._expected[anomaly] for anomaly in OF_HISTORIES if anomaly in self._expected)
