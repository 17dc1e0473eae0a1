"""The search for lost records (`audit.lost`) in all replicas' logs, and in the salvage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tanist.spark.jobs.audit.by_spark.logs import Logs
from tanist.spark.jobs.audit.findings import Finding
from tanist.spark.jobs.audit.log_files import Stretch
from tanist.spark.jobs.audit.lost import Copy

_NAMES: Final = ("topic", "partition", "offset", "leader_epoch", "replica", "salvage_id")


def copies(spark: SparkSession, logs: Logs, lost: Sequence[Finding], near: Sequence[Stretch]) -> Iterator[Copy]:
    wanted = spark.createDataFrame(
        [(each.topic, each.partition, each.first_offset, each.value) for each in lost],
        "topic string, partition int, offset bigint, lost string",
    )
    wanted = wanted.withColumn("hash", F.xxhash64("lost")).drop("lost")
    names = (*_NAMES, "value", "damage")
    for rows in (logs.rows(names, near=near), logs.salvaged(names, near)):
        if rows is None:
            continue
        sound = rows.where("damage is null").withColumn("hash", F.xxhash64("value"))
        found = sound.join(F.broadcast(wanted), ["topic", "partition", "offset", "hash"], "left_semi")
        for row in found.select(*_NAMES).collect():
            yield Copy(*row)
