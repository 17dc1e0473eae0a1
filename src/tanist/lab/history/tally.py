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
        return tuple(self._found[anomaly] for anomaly in OF_HISTORIES if anomaly in self._found)

    def expected(self) -> tuple[Found, ...]:
        """The cases that Kafka's model allows."""
        return tuple(self._expected[anomaly] for anomaly in OF_HISTORIES if anomaly in self._expected)
