"""Stage: everything that is known of a suspect value, as one row, and the findings in it.

Owns the rows that history and log come to, the evidence, and the judgement of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs.audit.events import POLL, SEND
from tanist.spark.jobs.audit.facts import PartitionFacts
from tanist.spark.jobs.audit.findings import columns

OFFSETS_SHOWN: Final = 20
"""Of one value: enough to understand the finding; a value may have been polled a million times."""


def rows(log: DataFrame, events: DataFrame, *, slim: bool) -> DataFrame:
    """Sends, polls and records of the log as rows of one shape."""
    is_send, is_ok = f"side = {SEND}", f"(side = {SEND} and outcome = 'ok')"
    names = ["place", "hash", "sent", "acknowledged", "failed", "polled", "held", "offset"]
    clients = events.select(
        "place", "hash", F.expr(f"int({is_send})").alias("sent"),
        F.expr(f"int({is_ok} and promised)").alias("acknowledged"),
        F.expr(f"int({is_send} and outcome = 'fail')").alias("failed"), F.expr(f"int(side = {POLL})").alias("polled"),
        F.lit(0).alias("held"), F.expr(f"if({is_ok} or side = {POLL}, offset, null)").alias("offset"),
        F.expr(f"int({is_send} and aborted)").alias("aborted"),
        F.expr(f"int({is_send} and not ordered)").alias("unordered"),
        F.expr(f"int({is_send} and outcome = 'info')").alias("unknown"),
        F.expr("int(committed)").alias("committed"), "value", "process", F.lit(None).cast("int").alias("epoch"),
        F.expr(f"if({is_ok} and ordered, struct(process, offset, began_ns, ended_ns), null)").alias("send"),
    )  # fmt: skip
    none = (F.lit(0).alias(name) for name in ("sent", "acknowledged", "failed", "polled"))
    held = log.select(
        "place", "hash", *none, F.lit(1).alias("held"), "offset",
        *(F.lit(0).alias(name) for name in ("aborted", "unordered", "unknown", "committed")),
        *(F.lit(None).cast("string").alias(name) for name in ("value", "process")),
        F.col("leader_epoch").alias("epoch"),
        F.lit(None).cast("struct<process: string, offset: bigint, began_ns: bigint, ended_ns: bigint>").alias("send"),
    )  # fmt: skip
    if slim:
        return clients.select(*names).unionByName(held.select(*names))
    return clients.unionByName(held)


def of_values(events: DataFrame, values: DataFrame) -> DataFrame:
    """Those with these values: place, hash."""
    return events.join(F.broadcast(values), ["place", "hash"], "left_semi")


def aggregate(log: DataFrame, events: DataFrame, suspects: DataFrame, aborted: DataFrame | None = None) -> DataFrame:
    """Everything known of the suspects, one row each. `held` and `places` are without aborted records."""
    known = of_values(rows(log, events, slim=False), suspects)
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
    absent = "acknowledged > 0 and held = 0 and (acked_offset is null or start is null or acked_offset >= start)"
    gone = "array_except(array_except(seen, places), aborted_places)"
    read_aborted = "polled_committed > 0 and held = 0 and size(array_intersect(seen, aborted_places)) > 0"
    found = [
        _finding(f"{absent} and held_aborted = 0", Anomaly.LOST_WRITE, "acked_offset", "acked_offset", _lost_detail()),
        _finding(
            f"{absent} and held_aborted > 0", Anomaly.ABORTED_IN_LOG, "get(aborted_places, 0)",
            "get(aborted_places, size(aborted_places) - 1)", "'lost to readers of committed records'",
        ),
        _finding(
            "held > 1 and sent > 0 and unordered = 0", Anomaly.DUPLICATE, "get(places, 0)",
            "get(places, size(places) - 1)", f"concat('at offsets ', {_listed('places')})",
        ),
        _finding(
            f"size({gone}) > 0 and exists({gone}, o -> start is null or o >= start)", Anomaly.READ_LOST,
            f"get({gone}, 0)", f"get({gone}, 0)",
            f"concat('polled by ', {_listed('readers')}, if(held > 0, concat('; the log has it at ',"
            f" {_listed('places')}), '; the log does not have it'))",
        ),
        _finding(
            "sent = 0 and polled > 0 and size(array_except(seen, aborted_places)) > 0",
            Anomaly.PHANTOM, "get(seen, 0)", "get(seen, size(seen) - 1)",
            f"concat('polled by ', {_listed('readers')}, ', sent by nobody')",
        ),
        _finding(
            # The records of an aborted transaction are in the log by right, and for read_uncommitted to see.
            "failed > 0 and acknowledged = 0 and unknown = 0"
            " and (polled_committed > 0 or (aborted = 0 and polled > 0 and held_aborted = 0))"
            f" or ({read_aborted})",
            Anomaly.G1A,
            "get(seen, 0)", "get(seen, size(seen) - 1)", f"concat('polled by ', {_listed('readers')})",
        ),
        _finding(
            "failed > 0 and acknowledged = 0 and unknown = 0 and aborted = 0 and held > 0",
            Anomaly.FAILED_IN_LOG, "get(places, 0)",
            "get(places, size(places) - 1)", "'the producer got an error'",
        ),
    ]  # fmt: skip
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


def _finding(condition: str, kind: Anomaly, first: str, last: str, detail: str) -> str:
    """A finding of a row of evidence, null unless there is one."""
    finding = f"named_struct('kind', '{kind.value}', 'first', {first}, 'last', {last}, 'detail', {detail})"
    return f"if({condition}, {finding}, null)"


def _lost_detail() -> str:
    return (
        "case when start is null then 'no replica of the partition is here'"
        " when acked_offset is null then 'the client got no offset'"
        " when acked_offset < high_watermark then 'below the high watermark'"
        " else 'at or above the high watermark' end"
    )


def _listed(name: str) -> str:
    return f"array_join(slice({name}, 1, {OFFSETS_SHOWN}), ', ')"
