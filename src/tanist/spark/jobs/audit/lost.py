"""Stage: which replicas, or whose salvage, still hold the records that are lost.

Owns what is looked for, and what is said of those who have it. An engine searches, by offset and value, in all
replicas' logs and in the salvage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs.audit.findings import Finding
from tanist.spark.jobs.audit.log_files import Stretch

_STRETCHES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Copy:
    """A record that is looked for, where it still is."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    replica: int | None
    salvage_id: str | None


Search = Callable[[Sequence[Finding], Sequence[Stretch]], Iterable[Copy]]
"""The copies of these findings' records, by offset and value; they stand in these stretches."""


def can_be_located(finding: Finding) -> bool:
    return finding.kind is Anomaly.LOST_WRITE and finding.first_offset is not None


def located(findings: Sequence[Finding], search: Search) -> list[Finding]:
    """The same findings; those of lost records that are still somewhere say where."""
    lost = [each for each in findings if can_be_located(each)]
    if not lost:
        return list(findings)
    stretches = [
        Stretch(each.topic, each.partition, each.first_offset, each.first_offset)
        for each in lost[:_STRETCHES_MAX]
        if each.first_offset is not None
    ]
    copies: dict[tuple[str, int, int | None], list[Copy]] = {}
    for copy in search(lost, stretches):
        copies.setdefault((copy.topic, copy.partition, copy.offset), []).append(copy)
    return [_with(each, copies.get((each.topic, each.partition, each.first_offset), [])) for each in findings]


def _with(finding: Finding, found: Sequence[Copy]) -> Finding:
    if not found or not can_be_located(finding):
        return finding
    return replace(
        finding,
        epochs=tuple(sorted({copy.leader_epoch for copy in found})),
        replicas=tuple(sorted({copy.replica for copy in found if copy.replica is not None})),
        detail=f"{finding.detail}; {_holders(found)}",
    )


def _holders(found: Sequence[Copy]) -> str:
    replicas = sorted({each.replica for each in found if each.salvage_id is None and each.replica is not None})
    salvages = sorted({(each.replica, each.salvage_id) for each in found if each.salvage_id is not None})
    parts = []
    if replicas:
        parts.append(f"replica {', '.join(map(str, replicas))} still has it")
    if salvages:
        parts.append("saved by " + ", ".join(f"broker {replica} ({entry})" for replica, entry in salvages))
    return "; ".join(parts)
