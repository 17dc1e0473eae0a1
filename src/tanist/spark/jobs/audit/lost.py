"""Stage: which replicas, or whose salvage, still hold the records that are lost.

Owns the search, by offset and value, in all replicas' logs and in the salvage. It reads a bounded number of stretches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs.audit.findings import Finding
from tanist.spark.jobs.audit.logs import Logs, Stretch

_STRETCHES_MAX: Final = 10_000


def can_be_located(finding: Finding) -> bool:
    return finding.kind is Anomaly.LOST_WRITE and finding.first_offset is not None


def located(spark: SparkSession, logs: Logs, findings: Sequence[Finding]) -> list[Finding]:
    """The same findings; those of lost records that are still somewhere say where."""
    lost = [each for each in findings if can_be_located(each)]
    if not lost:
        return list(findings)
    stretches = [
        Stretch(each.topic, each.partition, each.first_offset, each.first_offset)
        for each in lost[:_STRETCHES_MAX]
        if each.first_offset is not None
    ]
    names = ("topic", "partition", "replica", "leader_epoch", "offset", "value", "salvage_id", "damage")
    wanted = spark.createDataFrame(
        [(each.topic, each.partition, each.first_offset, each.value) for each in lost],
        "topic string, partition int, offset bigint, lost string",
    )
    wanted = wanted.withColumn("hash", F.xxhash64("lost")).drop("lost")
    holders: dict[tuple[str, int, int], list[Any]] = {}
    for rows in (logs.rows(names, near=stretches), logs.salvaged(names, stretches)):
        if rows is None:
            continue
        sound = rows.where("damage is null").withColumn("hash", F.xxhash64("value"))
        for row in sound.join(F.broadcast(wanted), ["topic", "partition", "offset", "hash"], "left_semi").collect():
            holders.setdefault((row.topic, row.partition, row.offset), []).append(row)
    result = []
    for each in findings:
        found = [] if each.first_offset is None else holders.get((each.topic, each.partition, each.first_offset), [])
        if each.kind is Anomaly.LOST_WRITE and found:
            each = replace(
                each,
                epochs=tuple(sorted({row.leader_epoch for row in found})),
                replicas=tuple(sorted({row.replica for row in found if row.replica is not None})),
                detail=f"{each.detail}; {_holders(found)}",
            )
        result.append(each)
    return result


def _holders(rows: Sequence[Any]) -> str:
    replicas = sorted({row.replica for row in rows if row.salvage_id is None and row.replica is not None})
    salvages = sorted({(row.replica, row.salvage_id) for row in rows if row.salvage_id is not None})
    parts = []
    if replicas:
        parts.append(f"replica {', '.join(map(str, replicas))} still has it")
    if salvages:
        parts.append("saved by " + ", ".join(f"broker {replica} ({entry})" for replica, entry in salvages))
    return "; ".join(parts)
