"""Stage: how much the clients did, whether an audit can judge it, and how far each partition had come by when.

Owns these three answers, each out of the sums of a history (`values.summed`). Only counts and a bounded number of
points reach the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tanist.client.topic_partition import TopicPartition
from tanist.log.names import parse_folder
from tanist.spark.jobs.audit import values as audit_values
from tanist.spark.jobs.audit.facts import PartitionFacts
from tanist.spark.jobs.audit.history import History
from tanist.spark.jobs.preconditions import NothingToJudge, listed

_EACH_MOMENT_MAX: Final = 2_000_000
_MOMENTS: Final = 200
"""The number of steps in which a partition's progress is shown."""


@dataclass(frozen=True, slots=True)
class HighWatermarkPoint:
    """The greatest offset that clients had seen up to a moment: the high watermark was at least one above."""

    topic: str
    partition: int
    at_ns: int
    offset: int


@dataclass(frozen=True, slots=True)
class ClientCounts:
    sends: int
    """Acknowledged."""
    expired: int
    """Of those, the ones from before the log's start."""
    polled: int
    partitions: frozenset[str]
    """As histories name them: "orders-3"."""


def counted(sums: DataFrame) -> ClientCounts:
    rows = sums.groupBy("place").agg(
        F.sum("acknowledged").alias("sends"), F.sum("expired").alias("expired"),
        F.sum(F.expr("if(reader is null, 0, records)")).alias("polls"),
    ).collect()  # fmt: skip
    return ClientCounts(
        sum(row.sends for row in rows), sum(row.expired for row in rows), sum(row.polls for row in rows),
        frozenset(row.place for row in rows),
    )  # fmt: skip


def require_judgeable(counts: ClientCounts, history: History, facts: Mapping[TopicPartition, PartitionFacts]) -> None:
    """`NothingToJudge` if the clients did nothing, or did all of it on other topics."""
    here = listed(sorted({topic for topic, _ in facts}))
    if not counts.partitions and not history.sends.where("outcome = 'ok'").limit(1).count():
        raise NothingToJudge(f"the history has no acknowledged send to {here}, and no record polled from there")
    if counts.partitions and counts.partitions.isdisjoint(f"{topic}-{partition}" for topic, partition in facts):
        named = listed(sorted(counts.partitions))
        raise NothingToJudge(f"the history speaks of {named}, and the replicas are of {here}")


def high_watermark_points(
    history: History, sums: DataFrame, counts: ClientCounts, facts: Mapping[TopicPartition, PartitionFacts]
) -> list[HighWatermarkPoint]:
    """How far each partition of `facts` had come by when, as clients knew it."""
    moments = sums.select("place", "at_ns", "offset")
    if counts.sends + counts.polled <= _EACH_MOMENT_MAX:
        # By the buckets alone a small history would be a single point.
        known = audit_values.with_offsets(history)
        moments = known.select("place", F.col("ended_ns").alias("at_ns"), "offset")
    moments = moments.where("at_ns is not null")
    span = moments.agg(F.min("at_ns").alias("first"), F.max("at_ns").alias("last")).first()
    step = 1 if span is None or span["first"] is None else max(1, (span["last"] - span["first"]) // _MOMENTS)
    rows = (
        moments.groupBy("place", F.expr(f"at_ns div {step} * {step}").alias("at_ns"))
        .agg(F.max("offset").alias("offset"))
        .orderBy("place", "at_ns")
        .collect()
    )
    points = []
    for row in rows:
        place = parse_folder(row.place)
        if place is not None and place in facts:
            points.append(HighWatermarkPoint(*place, row.at_ns, row.offset))
    return points
