"""Findings as rows of a DataFrame, and how few of them reach the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs import delta_files
from tanist.spark.jobs.audit.findings import (
    FINDINGS_MAX,
    RANKED,
    SCHEMA,
    Counts,
    Finding,
    counts_of,
    finding_of,
    merged,
)
from tanist.spark.jobs.audit.findings_table import ROWS_A_FILE, Write, Writer


def counted(findings: DataFrame) -> Counts:
    """All findings, counted."""
    rows = findings.groupBy("kind", "topic", "partition").agg(F.sum("records").alias("records")).collect()
    return counts_of((row.kind, row.topic, row.partition, row.records) for row in rows)


def first_of_each_kind(findings: DataFrame) -> list[Finding]:
    """The first `FINDINGS_MAX` of each kind, for people to read."""
    first = Window.partitionBy("kind").orderBy(*RANKED)
    numbered = findings.withColumn("_number", F.row_number().over(first))
    rows = numbered.where(F.col("_number") <= FINDINGS_MAX).drop("_number").collect()
    return merged(finding_of(row.asDict()) for row in rows)


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


def written(rows: DataFrame) -> Write:
    """Rows with the columns of `SCHEMA`, and `explained`, into the table of findings, by tasks."""

    def write(writer: Writer) -> Sequence[Any]:
        shares = rows.coalesce(max(1, rows.count() // ROWS_A_FILE))
        return [row.asDict() for row in shares.mapInArrow(writer, delta_files.SCHEMA).collect()]

    return write
