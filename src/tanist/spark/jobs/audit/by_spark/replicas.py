"""Stage: replicas against each other: offsets that differ, are missing below the high watermark, or are damaged.

Owns the use of level one, which settles almost all of a sound cluster: of each replica, epoch and bucket of offsets the
count of records and an exclusive-or of their hashes (`audit.sums`). Only buckets that do not agree are read again,
record by record. A replica that has nothing in a bucket must show, so replicas are counted for each bucket that there
should be, and never joined with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs.audit.by_spark import sums as spark_sums
from tanist.spark.jobs.audit.by_spark.findings import columns, runs
from tanist.spark.jobs.audit.by_spark.logs import Logs
from tanist.spark.jobs.audit.facts import EpochRange, PartitionFacts, buckets_of
from tanist.spark.jobs.audit.log_files import Holder, Stretch
from tanist.spark.jobs.audit.rules import FLAT_SHARE, STRETCHES_MAX
from tanist.spark.jobs.audit.sums import BUCKET, BUCKET_OFFSETS


@dataclass(frozen=True, slots=True)
class ComparedReplicas:
    findings: DataFrame | None
    plan: str
    """Which plan the comparison took, and why."""


def buckets(logs: Logs) -> DataFrame:
    """Level one, of all replicas: rows of `audit.sums`, one for a bucket."""
    return spark_sums.together(logs.sums())


def epoch_ranges(level_one: DataFrame) -> list[EpochRange]:
    found = (
        level_one.where("records > 0")
        .groupBy("topic", "partition", "replica", "leader_epoch")
        .agg(F.min("first_offset").alias("first"), F.max("last_offset").alias("last"), F.sum("records").alias("count"))
        .orderBy("topic", "partition", "replica", "leader_epoch")
    )
    return [
        EpochRange(row.topic, row.partition, row.replica, row.leader_epoch, row["first"], row["last"], row["count"])
        for row in found.collect()
        if row.replica is not None
    ]


def compare(
    logs: Logs,
    level_one: DataFrame,
    facts: Mapping[TopicPartition, PartitionFacts],
    *,
    plan: str = "auto",
    keep: Callable[[DataFrame], DataFrame],
    progress: Callable[[str], None] = lambda _: None,
) -> ComparedReplicas:
    """Replicas against each other. `level_one` is that of `buckets`; `keep` caches what is looked at more than once."""
    spark = level_one.sparkSession
    suspects = keep(differing(level_one, expected(spark, facts)))
    count, total = suspects.count(), max(buckets_of(facts), 1)
    again: list[Stretch] | None = None
    flat = plan == "flat" or (plan == "auto" and count > FLAT_SHARE * total)
    if not flat:
        again = stretches_of(suspects)
    described = f"{'flat' if again is None else 'two-level'}: {count} of {total} buckets differ"
    if not count:
        return ComparedReplicas(None, described)
    progress(f"looking into {count} of {total} stretches of {BUCKET_OFFSETS} offsets")
    if again is not None:
        # A table of its own: a plan that has all that led to it would be written down again with each plan above it.
        rows = [(each.topic, each.partition, each.first // BUCKET_OFFSETS) for each in again]
        suspects = spark.createDataFrame(rows, "topic string, partition int, bucket bigint")
    there = held(logs, suspects, again)
    if again is not None:
        # Little, and looked at twice: for what differs and for what is missing.
        there = keep(there)
    return ComparedReplicas(compared(spark, facts, there, suspects), described)


def expected(spark: SparkSession, facts: Mapping[TopicPartition, PartitionFacts]) -> DataFrame:
    """Each bucket below the high watermark, with how many replicas and records it should have."""
    rows = [
        (topic, partition, len(each.replicas), each.start, each.high_watermark, each.judged)
        for (topic, partition), each in facts.items()
    ]
    schema = "topic string, partition int, replicas int, start bigint, high_watermark bigint, judged boolean"
    table = spark.createDataFrame(rows, schema)
    return table.where("high_watermark > start").withColumn(
        "bucket",
        F.explode(F.expr(f"sequence(start div {BUCKET_OFFSETS}, (high_watermark - 1) div {BUCKET_OFFSETS})")),
    )


def differing(level_one: DataFrame, wanted: DataFrame) -> DataFrame:
    """Buckets (topic, partition, bucket) in which not all replicas have the same, or in which there is a hole."""
    of_replica = (
        level_one.where("records > 0")
        .groupBy("topic", "partition", "replica", "bucket")
        .agg(F.sum("records").alias("records"), F.expr("bit_xor(hash)").alias("hash"))
    )
    together = of_replica.groupBy("topic", "partition", "bucket").agg(
        F.count("*").alias("present"),
        F.expr("min(hash) <> max(hash) or min(records) <> max(records)").alias("unequal"),
        F.max("records").alias("most"),
    )
    width = F.expr(
        f"least(high_watermark, (bucket + 1) * {BUCKET_OFFSETS}) - greatest(start, bucket * {BUCKET_OFFSETS})"
    )
    joined = wanted.join(together, ["topic", "partition", "bucket"], "full")
    return joined.where(
        F.col("unequal")
        | (F.coalesce("present", F.lit(0)) < F.col("replicas"))
        | (F.col("judged") & (F.coalesce("most", F.lit(0)) < width))
    ).select("topic", "partition", "bucket")


def stretches_of(differing_buckets: DataFrame) -> list[Stretch] | None:
    """The offsets to read again; None if there are too many of them to list."""
    found = differing_buckets.limit(STRETCHES_MAX + 1).collect()
    if len(found) > STRETCHES_MAX:
        return None
    return [
        Stretch(row.topic, row.partition, row.bucket * BUCKET_OFFSETS, (row.bucket + 1) * BUCKET_OFFSETS - 1)
        for row in found
    ]


def held(logs: Logs, suspects: DataFrame, again: Sequence[Stretch] | None) -> DataFrame:
    """The records at each offset in each replica: in the buckets that differ, or (`again` None) everywhere."""
    names = ("topic", "partition", "replica", "leader_epoch", "offset", "fingerprint", "damage")
    rows = logs.rows(names, near=again).where("damage is null")
    rows = rows.withColumn("bucket", F.expr(BUCKET))
    if again is not None:
        # Neighbouring stretches may have been read as one.
        rows = rows.join(F.broadcast(suspects), ["topic", "partition", "bucket"], "left_semi")
    return rows.groupBy("topic", "partition", "offset").agg(
        F.collect_set("replica").alias("present"),
        F.expr("min(xxhash64(leader_epoch, fingerprint)) <> max(xxhash64(leader_epoch, fingerprint))").alias("unequal"),
        F.array_sort(F.collect_set("leader_epoch")).alias("epochs"),
        F.array_sort(F.collect_set(F.struct("replica", "leader_epoch", "fingerprint"))).alias("versions"),
    )


def compared(
    spark: SparkSession, facts: Mapping[TopicPartition, PartitionFacts], there: DataFrame, suspects: DataFrame
) -> DataFrame:
    """Findings in the buckets that differ, out of what is `held` there."""
    return _divergent(there).unionByName(_missing(spark, facts, there, suspects))


def _divergent(there: DataFrame) -> DataFrame:
    unequal = there.where("unequal").select(
        "topic", "partition", "offset", "epochs", F.array_sort("present").alias("replicas"),
        F.when(F.size("epochs") > 1, _epochs_held()).otherwise(F.lit("the same epoch, and other bytes")).alias("note"),
    )  # fmt: skip
    return runs(unequal, Anomaly.DIVERGENT, F.col("note"), BUCKET_OFFSETS)


def _epochs_held() -> F.Column:
    versions = "transform(versions, v -> concat('replica ', v.replica, ' has epoch ', v.leader_epoch))"
    return F.expr(f"array_join({versions}, ', ')")


def _missing(
    spark: SparkSession, facts: Mapping[TopicPartition, PartitionFacts], there: DataFrame, suspects: DataFrame
) -> DataFrame:
    rows = [
        (topic, partition, each.start, each.high_watermark, sorted(each.starts.items()))
        for (topic, partition), each in facts.items()
        if each.judged
    ]
    schema = (
        "topic string, partition int, start bigint, high_watermark bigint,"
        " starts array<struct<replica: int, start: bigint>>"
    )
    table = F.broadcast(spark.createDataFrame(rows, schema))
    offsets = suspects.join(table, ["topic", "partition"]).withColumn(
        "offset",
        F.explode(
            F.expr(
                f"filter(sequence(bucket * {BUCKET_OFFSETS}, (bucket + 1) * {BUCKET_OFFSETS} - 1),"
                " o -> o >= start and o < high_watermark)"
            )
        ),
    )
    should = F.expr("transform(filter(starts, s -> s.start <= offset), s -> s.replica)")
    absent = (
        offsets.join(there, ["topic", "partition", "offset"], "left")
        .withColumn("replicas", F.array_except(should, F.coalesce("present", F.expr("array()"))))
        .where("size(replicas) > 0")
        .select(
            "topic", "partition", "offset", "replicas",
            # Not by epochs: what is missing is one run, whatever epochs it had.
            F.lit(None).cast("array<int>").alias("epochs"),
            F.when(F.coalesce(F.size("present"), F.lit(0)) <= 0, "no replica has it")
            .otherwise(F.concat(F.lit("held by "), F.array_join(F.array_sort("present"), ",")))
            .alias("note"),
        )
    )  # fmt: skip
    return runs(absent, Anomaly.MISSING, F.col("note"), BUCKET_OFFSETS)


def holders(level_one: DataFrame, what: str) -> list[Holder]:
    """The replicas that have damage (`damages`), or records of transactions (`transactional`)."""
    rows = level_one.where(f"{what} > 0").select("topic", "partition", "replica").distinct().collect()
    return [(row.topic, row.partition, row.replica) for row in rows]


def damaged(logs: Logs, where: Sequence[Holder]) -> DataFrame:
    """The damage in these replicas."""
    names = ("topic", "partition", "replica", "leader_epoch", "offset", "batch_position", "segment", "damage")
    found = logs.rows(names, holders=where).where("damage is not null")
    return found.select(
        *columns(
            kind=F.lit(Anomaly.DAMAGED.value), topic=F.col("topic"), partition=F.col("partition"),
            first_offset=F.col("offset"), last_offset=F.col("offset"), records=F.lit(1),
            epochs=F.expr("if(leader_epoch is null, array(), array(leader_epoch))"),
            replicas=F.array("replica"),
            detail=F.concat(
                F.col("damage"), F.lit(", at byte "), F.col("batch_position"), F.lit(" of segment "), F.col("segment")
            ),
        )
    )  # fmt: skip
