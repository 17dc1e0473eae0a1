"""The findings of an audit: one row a finding, of one shape for all kinds, and how few of them people get.

Owns the schema, and the bounds. A table has all findings (`findings_table`); the driver has the count of each kind
in each partition, and of each kind the first `FINDINGS_MAX` for people to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

from tanist.lab.anomalies import OF_AUDITS, Anomaly

FINDINGS_MAX: Final = 1000
SCHEMA: Final = (
    "kind string, topic string, partition int, first_offset bigint, last_offset bigint, records bigint,"
    " epochs array<int>, replicas array<int>, value string, process string, detail string"
)

_OTHERS: Final = ("last_offset", "epochs", "replicas", "value", "process", "detail")
RANKED: Final = ("topic", "partition", "first_offset", *_OTHERS)
"""The columns by which the first findings of a kind are chosen."""


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Anomaly
    topic: str
    partition: int
    first_offset: int | None
    last_offset: int | None
    records: int
    """How many records, or offsets."""
    epochs: tuple[int, ...]
    replicas: tuple[int, ...]
    """The replicas that lack it, differ, or still have it: `detail` says which."""
    value: str | None
    process: str | None
    detail: str
    explained: str | None = None
    """The metadata change that explains it."""

    @property
    def offsets(self) -> str:
        if self.first_offset is None:
            return "-"
        same = self.last_offset in (None, self.first_offset)
        return str(self.first_offset) if same else f"{self.first_offset}..{self.last_offset}"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "kind": self.kind.value}


Counts: TypeAlias = dict[tuple[Anomaly, str, int | None], int]
"""By kind, topic and partition, in records or offsets."""


def counts_of(rows: Iterable[tuple[str, str, int | None, int]]) -> Counts:
    """Of kind, topic, partition and records: the worst kinds first."""
    order = OF_AUDITS
    found = [(Anomaly(kind), topic, partition, records) for kind, topic, partition, records in rows]
    ordered = sorted(found, key=lambda row: (order.index(row[0]), row[1], _number(row[2])))
    return {(kind, topic, partition): records for kind, topic, partition, records in ordered}


def finding_of(row: Mapping[str, Any]) -> Finding:
    found = dict(row)
    return Finding(
        **{
            **found,
            "kind": Anomaly(found["kind"]),
            "epochs": tuple(found["epochs"] or ()),
            "replicas": tuple(found["replicas"] or ()),
        }
    )


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """The worst kinds first, then by place; runs that a bucket has cut are one again."""
    joined: list[Finding] = []
    for each in sorted(findings, key=_rank):
        last = joined[-1] if joined else None
        if last is not None and each.kind in (Anomaly.MISSING, Anomaly.DIVERGENT) and _adjoins(last, each):
            joined[-1] = replace(last, last_offset=each.last_offset, records=last.records + each.records)
        else:
            joined.append(each)
    return joined


def _number(of: int | None) -> int:
    """For sorting: what has no number comes before 0."""
    return -1 if of is None else of


def _rank(each: Finding) -> tuple[Any, ...]:
    """Of the same data each audit gives the same."""
    others = (str(getattr(each, name)) for name in _OTHERS)
    return (OF_AUDITS.index(each.kind), each.topic, each.partition, _number(each.first_offset), *others)


def _adjoins(last: Finding, each: Finding) -> bool:
    alike = replace(each, first_offset=last.first_offset, last_offset=last.last_offset, records=last.records)
    return alike == last and last.last_offset is not None and each.first_offset == last.last_offset + 1
