"""Stage: whether each producer's records stand in the order in which it sent them, by their first place in the log.

Owns the rule: take two sends of one process to one partition, both acknowledged and idempotent; if the second began
after the first was acknowledged, the second stands behind the first. A record's place is its first one in the log: a
record that was acknowledged at one offset and stands at another, or at two, is looked at where it is.

Sends whose beginning is not known prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs.audit.by_spark import values as audit_values
from tanist.spark.jobs.audit.by_spark.findings import columns
from tanist.spark.jobs.audit.by_spark.history import History
from tanist.spark.jobs.audit.by_spark.logs import Logs
from tanist.spark.jobs.audit.facts import PartitionFacts
from tanist.spark.jobs.audit.log_files import Stretch, stretches_at
from tanist.spark.jobs.audit.rules import PLACES_MAX

_NAMES: Final = ("process", "place", "offset", "began_ns", "ended_ns")


@dataclass(frozen=True, slots=True)
class Placed:
    """Acknowledged sends with their places: process, place, offset, began_ns, ended_ns. No values: `trusted` is nearly
    every acknowledged send there is."""

    trusted: DataFrame
    """Where they were acknowledged."""
    moved: DataFrame | None
    """At the offset where the evidence has them, if that is another one."""


def check(
    logs: Logs,
    history: History,
    suspects: DataFrame | None,
    facts: Mapping[TopicPartition, PartitionFacts],
    *,
    keep: Callable[[DataFrame], DataFrame],
) -> DataFrame | None:
    """The findings, or None without any. `suspects` are those of `values.compare`, if there are suspect values."""
    found = keep(reordered(placed(history, suspects)))
    if not found.count():
        return None
    return findings(found, audit_values.reference(logs, facts, places(found)), history)


def placed(history: History, known: DataFrame | None) -> Placed:
    """`known` is the evidence of suspect values, if there are such."""
    sends = history.sends.where("outcome = 'ok' and ordered and offset is not null and ended_ns is not null")
    sends = sends.select(*_NAMES)
    if known is None:
        return Placed(sends, None)
    suspect = known.select("place", F.expr("get(places, 0)").alias("first"), F.explode("sends").alias("send"))
    # A record that stands nowhere was lost, and has no order.
    suspect = suspect.select("place", "first", "send.*").where("not (first <=> offset)")
    suspect_sends = suspect.select("process", "place", "offset", "ended_ns")
    moved = suspect.where("first is not null and ended_ns is not null").select(
        "process", "place", F.col("first").alias("offset"), "began_ns", "ended_ns"
    )
    return Placed(
        sends.join(F.broadcast(suspect_sends), ["process", "place", "offset", "ended_ns"], "left_anti"), moved
    )


def reordered(sends: Placed) -> DataFrame:
    """Each record that stands before one of its producer that had been acknowledged when it was sent.

    process, place, offset, began_ns; `behind` is the greatest offset of those before it.
    """
    placed = sends.trusted
    if sends.moved is not None:
        placed = placed.unionByName(sends.moved.select(*_NAMES))
    # The events of a producer, in time: acknowledgements, and beginnings of sends, which come after those of the
    # same moment.
    events = placed.select(
        "process", "place", "offset", F.col("ended_ns").alias("at_ns"), F.lit(0).alias("began")
    ).unionByName(
        placed.where("began_ns is not null").select(
            "process", "place", "offset", F.col("began_ns").alias("at_ns"), F.lit(1).alias("began")
        )
    )
    until = (
        Window.partitionBy("process", "place")
        .orderBy("at_ns", "began")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        events.withColumn("behind", F.max(F.expr("if(began = 0, offset, null)")).over(until))
        .where("began = 1 and behind > offset")
        .select("process", "place", "offset", F.col("at_ns").alias("began_ns"), "behind")
    )


def places(found: DataFrame) -> list[Stretch] | None:
    """Where in the log they stand; None if that is nearly everywhere."""
    rows = found.select("place", "offset").distinct().limit(PLACES_MAX + 1).collect()
    if len(rows) > PLACES_MAX:
        return None
    return stretches_at((row.place, row.offset, row.offset) for row in rows)


def findings(found: DataFrame, log: DataFrame, history: History) -> DataFrame:
    """The same as findings, with the values that stand there. `found` is small, and was looked at: it is not empty."""
    there = log.join(F.broadcast(found.select("place", "offset").distinct()), ["place", "offset"], "left_semi")
    there = there.select("place", "offset", "hash").dropDuplicates(["place", "offset"])
    named = found.join(there, ["place", "offset"], "left").distinct()
    # A send that was written down twice is one.
    values = history.sends.select("process", "place", "hash", "began_ns", "value").distinct()
    valued = values.join(F.broadcast(named), ["process", "place", "hash", "began_ns"])
    return valued.select(
        *columns(
            kind=F.lit(Anomaly.REORDERED.value),
            topic=F.expr("regexp_replace(place, '-[0-9]+$', '')"),
            partition=F.expr("try_cast(substring_index(place, '-', -1) as int)"),
            first_offset=F.col("offset"), last_offset=F.col("offset"), records=F.lit(1), value=F.col("value"),
            process=F.col("process"),
            detail=F.concat(F.lit("a record that was acknowledged before it was sent stands at "), F.col("behind")),
        )
    )  # fmt: skip
