"""Stage: how much the clients did, and how far each partition had come by when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as F

from tanist.client.topic_partition import TopicPartition
from tanist.spark.jobs.audit.by_spark.history import POLL, History
from tanist.spark.jobs.audit.by_spark.values import with_offsets
from tanist.spark.jobs.audit.result import ClientCounts


def counted(history: History, begun: Mapping[TopicPartition, int]) -> ClientCounts:
    """`begun`: where the logs begin that begin above offset 0."""
    spark = history.events.sparkSession
    starts = spark.createDataFrame(
        [(f"{topic}-{partition}", start) for (topic, partition), start in begun.items()], "place string, start bigint"
    )
    promised = "outcome = 'ok' and promised"
    rows = (
        history.events.where(f"side = {POLL} or outcome = 'ok'")
        .join(F.broadcast(starts), "place", "left")
        .groupBy("place", F.expr("offset is not null").alias("placed"))
        .agg(
            F.count("*").alias("claims"),
            F.expr(f"count_if({promised})").alias("sends"),
            F.expr(f"count_if({promised} and offset < start)").alias("expired"),
            F.expr(f"count_if(side = {POLL})").alias("polled"),
            F.min("ended_ns").alias("first_ns"),
            F.max("ended_ns").alias("last_ns"),
        )
        .collect()
    )
    return ClientCounts.of(row.asDict() for row in rows)


def moments(history: History, step_ns: int) -> list[tuple[str, int, int]]:
    """Place, moment, and the greatest offset that a client knew by then, a row for each `step_ns`."""
    known = with_offsets(history).where("ended_ns is not null")
    rows: list[Any] = (
        known.groupBy("place", F.expr(f"ended_ns div {step_ns} * {step_ns}").alias("at_ns"))
        .agg(F.max("offset").alias("offset"))
        .orderBy("place", "at_ns")
        .collect()
    )
    return [(row.place, row.at_ns, row.offset) for row in rows]
