"""Whether each producer's records stand in the order in which it sent them, by their first occurrence in the log.

Owns the rule: of two sends of one process to one partition, both acknowledged and idempotent, the second of which began
after the first was acknowledged, the second stands behind the first. A record's place is its first one in the log: what
was acknowledged at one offset and stands at another, or at two, is looked at where it is.

A send that is out of order stands, in the order of acknowledgements, below one before it. That takes one window; only
the producers in which it finds such are then held against the exact rule. Sends whose beginning nobody knows prove
nothing.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tanist.spark.jobs.audit_history import History
from tanist.spark.jobs.findings import Kind, columns


def placed(history: History, known: DataFrame | None) -> DataFrame:
    """Acknowledged sends with their places: as acknowledged, or if the value is suspect as the evidence has it.

    No values: this is every acknowledged send there is.
    """
    sends = history.sends.where("outcome = 'ok' and ordered and offset is not null and ended_ns is not null")
    names = ["process", "place", "offset", "began_ns", "ended_ns"]
    sends = sends.select(*names)
    if known is None:
        return sends
    suspect = known.select("place", F.expr("get(places, 0)").alias("first"), F.explode("sends").alias("send"))
    suspect = suspect.select("place", "first", "send.*")
    told = suspect.select("process", "place", "offset", "ended_ns")
    moved = suspect.withColumn("offset", F.col("first")).where("offset is not null and ended_ns is not null")
    trusted = sends.join(F.broadcast(told), ["process", "place", "offset", "ended_ns"], "left_anti")
    return trusted.select(*names).unionByName(moved.select(*names))


def reordered(sends: DataFrame) -> DataFrame:
    """Each record that stands before one that had been acknowledged when it was sent.

    process, place, offset, began_ns; `behind` is the greatest offset of those before it.
    """
    by_producer = Window.partitionBy("process", "place")
    so_far = by_producer.orderBy("ended_ns", "offset").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    disordered = (
        sends.withColumn("greatest", F.max("offset").over(so_far))
        .where("greatest > offset and began_ns is not null")
        .select("process", "place")
        .distinct()
    )
    suspects = sends.join(F.broadcast(disordered), ["process", "place"], "left_semi")
    # What happened to a producer, in time: acknowledgements, and beginnings of sends, which come after those of the
    # same moment.
    events = suspects.select(
        "process", "place", "offset", F.col("ended_ns").alias("at_ns"), F.lit(0).alias("began")
    ).unionByName(
        suspects.where("began_ns is not null").select(
            "process", "place", "offset", F.col("began_ns").alias("at_ns"), F.lit(1).alias("began")
        )
    )
    until = by_producer.orderBy("at_ns", "began").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        events.withColumn("behind", F.max(F.expr("if(began = 0, offset, null)")).over(until))
        .where("began = 1 and behind > offset")
        .select("process", "place", "offset", F.col("at_ns").alias("began_ns"), "behind")
    )


def findings(found: DataFrame, log: DataFrame, history: History) -> DataFrame:
    """The same as findings, with the values that stand there. `found` is small, and was looked at: it is not empty."""
    there = log.join(F.broadcast(found.select("place", "offset").distinct()), ["place", "offset"], "left_semi")
    there = there.select("place", "offset", "hash").dropDuplicates(["place", "offset"])
    named = found.join(there, ["place", "offset"], "left")
    values = history.sends.select("process", "place", "hash", "began_ns", "value")
    told = values.join(F.broadcast(named), ["process", "place", "hash", "began_ns"])
    return told.select(
        *columns(
            kind=F.lit(Kind.REORDERED.value),
            topic=F.expr("regexp_replace(place, '-[0-9]+$', '')"),
            partition=F.expr("try_cast(substring_index(place, '-', -1) as int)"),
            first_offset=F.col("offset"), last_offset=F.col("offset"), records=F.lit(1), value=F.col("value"),
            process=F.col("process"),
            detail=F.concat(F.lit("a record that was acknowledged before it was sent stands at "), F.col("behind")),
        )
    )  # fmt: skip
