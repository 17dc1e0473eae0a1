"""Stage: everything that is known of a suspect value, as one row, and the findings in it.

Owns the rows that history and log come to, the evidence, and the judgement of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tanist.client.topic_partition import TopicPartition
from tanist.spark.jobs.audit.by_spark.findings import columns
from tanist.spark.jobs.audit.by_spark.history import POLL, SEND
from tanist.spark.jobs.audit.facts import PartitionFacts
from tanist.spark.jobs.audit.rules import OF_VALUES, Rule


def rows(log: DataFrame, events: DataFrame) -> DataFrame:
    """Sends, polls and records of the log as rows of one shape."""
    is_send, is_ok = f"side = {SEND}", f"(side = {SEND} and outcome = 'ok')"
    clients = events.select(
        "place", "hash", F.expr(f"int({is_send})").alias("sent"),
        F.expr(f"int({is_ok} and promised)").alias("acknowledged"),
        F.expr(f"int({is_ok} and offset is null)").alias("unplaced"),
        F.expr(f"int({is_send} and outcome = 'fail')").alias("failed"), F.expr(f"int(side = {POLL})").alias("polled"),
        F.lit(0).alias("held"), F.expr(f"if({is_ok} or side = {POLL}, offset, null)").alias("offset"),
        F.expr(f"int({is_send} and aborted)").alias("aborted"),
        F.expr(f"int({is_send} and not ordered)").alias("unordered"),
        F.expr(f"int({is_send} and outcome = 'info')").alias("unknown"),
        F.expr("int(committed)").alias("committed"), "value", "process", F.lit(None).cast("int").alias("epoch"),
        F.expr(f"if({is_ok} and ordered, struct(process, offset, began_ns, ended_ns), null)").alias("send"),
    )  # fmt: skip
    none = (F.lit(0).alias(name) for name in ("sent", "acknowledged", "unplaced", "failed", "polled"))
    held = log.select(
        "place", "hash", *none, F.lit(1).alias("held"), "offset",
        *(F.lit(0).alias(name) for name in ("aborted", "unordered", "unknown", "committed")),
        *(F.lit(None).cast("string").alias(name) for name in ("value", "process")),
        F.col("leader_epoch").alias("epoch"),
        F.lit(None).cast("struct<process: string, offset: bigint, began_ns: bigint, ended_ns: bigint>").alias("send"),
    )  # fmt: skip
    return clients.unionByName(held)


def aggregate(log: DataFrame, events: DataFrame, suspects: DataFrame, aborted: DataFrame | None = None) -> DataFrame:
    """Everything known of the suspects, one row each. `held` and `places` are without aborted records."""
    known = rows(log, events).join(suspects, ["place", "hash"], "left_semi")
    if aborted is None:
        known = known.withColumn("held_aborted", F.lit(0))
    else:
        known = known.join(aborted.withColumn("_gone", F.lit(1)), ["place", "offset"], "left")
        known = known.withColumn("held_aborted", F.expr("held * coalesce(_gone, 0)"))
        known = known.withColumn("held", F.expr("held - held_aborted"))
    offsets = "array_sort(collect_set(if({0} > 0, offset, null)))"
    return known.groupBy("place", "hash").agg(
        *(F.sum(name).alias(name) for name in ("sent", "acknowledged", "failed", "polled", "unknown")),
        *(F.sum(name).alias(name) for name in ("held", "held_aborted")),
        F.max("aborted").alias("aborted"), F.max("unordered").alias("unordered"),
        F.sum(F.expr("polled * committed")).alias("polled_committed"),
        F.max("value").alias("value"), F.min(F.expr("if(sent > 0, process, null)")).alias("process"),
        F.min(F.expr("if(sent > 0, offset, null)")).alias("acked_offset"),
        F.expr(offsets.format("held")).alias("places"), F.expr(offsets.format("polled")).alias("seen"),
        F.expr(offsets.format("held_aborted")).alias("aborted_places"),
        F.array_sort(F.collect_set("epoch")).alias("epochs"),
        F.array_sort(F.collect_set(F.expr("if(polled > 0, process, null)"))).alias("readers"),
        F.collect_list("send").alias("sends"),
    )  # fmt: skip


def judged(spark: SparkSession, known: DataFrame, facts: Mapping[TopicPartition, PartitionFacts]) -> DataFrame:
    """The findings among the evidence. Records from before the log's start have expired, and are not lost."""
    rows = [
        (f"{topic}-{partition}", topic, partition, each.start, each.high_watermark)
        for (topic, partition), each in facts.items()
    ]
    table = spark.createDataFrame(
        rows, "place string, topic string, partition int, start bigint, high_watermark bigint"
    )
    full = known.join(F.broadcast(table), "place", "left")
    topic = F.coalesce("topic", F.expr("regexp_replace(place, '-[0-9]+$', '')"))
    partition = F.coalesce("partition", F.expr("try_cast(substring_index(place, '-', -1) as int)"))
    full = full.withColumn("topic", topic).withColumn("partition", partition)
    found = map(_finding, OF_VALUES)
    # All kinds in one pass: a value may be several findings.
    several = full.select(
        "topic", "partition", "epochs", "value", "process",
        F.explode(F.expr(f"filter(array({', '.join(found)}), each -> each is not null)")).alias("_finding"),
    )  # fmt: skip
    return several.select(
        *columns(
            kind=F.col("_finding.kind"), topic=F.col("topic"), partition=F.col("partition"),
            first_offset=F.col("_finding.first"), last_offset=F.col("_finding.last"), records=F.lit(1),
            epochs=F.col("epochs"), value=F.col("value"), process=F.col("process"), detail=F.col("_finding.detail"),
        )
    )  # fmt: skip


def _finding(rule: Rule) -> str:
    """A finding of a row of evidence, null unless there is one."""
    found = f"'kind', '{rule.kind.value}', 'first', {rule.first}, 'last', {rule.last}, 'detail', {rule.detail}"
    return f"if({rule.when}, named_struct({found}), null)"
