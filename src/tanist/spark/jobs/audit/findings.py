"""The findings of an audit: one row a finding, of one shape for all kinds, and how few of them reach the driver.

Owns the schema, and the bounds. A table has all findings (`findings_table`); the driver has the count of each kind
in each partition, and of each kind the first `FINDINGS_MAX` for people to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tanist.lab.anomalies import OF_AUDITS, Anomaly

FINDINGS_MAX: Final = 1000
SCHEMA: Final = (
    "kind string, topic string, partition int, first_offset bigint, last_offset bigint, records bigint,"
    " epochs array<int>, replicas array<int>, value string, process string, detail string"
)


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


def counted(findings: DataFrame) -> Counts:
    """All findings, counted; the worst kinds first."""
    rows = findings.groupBy("kind", "topic", "partition").agg(F.sum("records").alias("records")).collect()
    order = OF_AUDITS
    return {
        (Anomaly(row.kind), row.topic, row.partition): row.records
        for row in sorted(rows, key=lambda row: (order.index(Anomaly(row.kind)), row.topic, _number(row.partition)))
    }


def first_of_each_kind(findings: DataFrame) -> list[Finding]:
    """The first `FINDINGS_MAX` of each kind, for people to read."""
    first = Window.partitionBy("kind").orderBy("topic", "partition", "first_offset")
    numbered = findings.withColumn("_number", F.row_number().over(first))
    rows = numbered.where(F.col("_number") <= FINDINGS_MAX).drop("_number").collect()
    return merged(finding_of(row.asDict()) for row in rows)


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


def columns(**known: Any) -> list[F.Column]:
    """The columns of `SCHEMA`, those that are named by expressions; the others are null."""
    kinds = dict(each.strip().split(" ", 1) for each in SCHEMA.split(","))
    unknown = set(known) - set(kinds)
    if unknown:
        raise ValueError(f"findings have no {', '.join(sorted(unknown))}")
    return [(known[name] if name in known else F.lit(None)).cast(kind).alias(name) for name, kind in kinds.items()]


def runs(findings: DataFrame, kind: Anomaly, detail: F.Column, bucket_offsets: int) -> DataFrame:
    """Neighbouring offsets (topic, partition, offset, epochs, replicas, note) as one finding.

    A run ends with its bucket, so that no task gets all of a partition that is wrong from end to end; `merged` joins
    the runs that the driver gets.
    """
    alike = ("topic", "partition", "epochs", "replicas", "note")
    bucket = F.expr(f"offset div {bucket_offsets}")
    order = Window.partitionBy("topic", "partition", bucket, "epochs", "replicas", "note").orderBy("offset")
    numbered = findings.withColumn("_run", F.col("offset") - F.row_number().over(order))
    grouped = numbered.groupBy(*alike, bucket.alias("_bucket"), "_run").agg(
        F.min("offset").alias("first_offset"), F.max("offset").alias("last_offset"), F.count("*").alias("records")
    )
    return grouped.select(
        *columns(
            kind=F.lit(kind.value), topic=F.col("topic"), partition=F.col("partition"), epochs=F.col("epochs"),
            replicas=F.col("replicas"), first_offset=F.col("first_offset"), last_offset=F.col("last_offset"),
            records=F.col("records"), detail=detail,
        )
    )  # fmt: skip


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """The worst kinds first, then by place; runs that a bucket has cut are one again."""
    order = OF_AUDITS
    joined: list[Finding] = []
    for each in sorted(
        findings, key=lambda each: (order.index(each.kind), each.topic, each.partition, _number(each.first_offset))
    ):
        last = joined[-1] if joined else None
        if last is not None and each.kind in (Anomaly.MISSING, Anomaly.DIVERGENT) and _adjoins(last, each):
            joined[-1] = replace(last, last_offset=each.last_offset, records=last.records + each.records)
        else:
            joined.append(each)
    return joined


def _number(of: int | None) -> int:
    """For sorting: what has no number comes before 0."""
    return -1 if of is None else of


def _adjoins(last: Finding, each: Finding) -> bool:
    alike = replace(each, first_offset=last.first_offset, last_offset=last.last_offset, records=last.records)
    return alike == last and last.last_offset is not None and each.first_offset == last.last_offset + 1
