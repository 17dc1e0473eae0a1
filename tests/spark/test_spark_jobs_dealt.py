"""Shares reach the task that they are for, and no other: what all tasks get does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from tanist.client.topic_partition import TopicPartition
from tanist.spark.jobs.audit import values as audit_values
from tanist.spark.jobs.audit.history import history
from tanist.spark.jobs.audit.parquet_lines import ParquetLines
from tanist.spark.jobs.audit.segment_ranges import SegmentRange, read_ranges, read_sums
from tanist.spark.jobs.dealt import dealt

MANY = 5_000


def for_all_tasks(frame: Any) -> int:
    """The bytes of the function that Spark gives to each task."""
    return int(frame._jdf.queryExecution().optimizedPlan().expressions().head().func().command().size())


def where(share: Any) -> Iterator[Any]:
    context = TaskContext.get()
    assert context is not None
    yield pa.record_batch({"share": pa.array([share["name"]]), "task": pa.array([context.partitionId()], pa.int32())})


@pytest.mark.parametrize("count", [0, 1, 30])
def test_a_task_for_each_share(spark: Any, count: int) -> None:
    names = [f"share {number}" for number in range(count)]
    found = dealt(spark, [{"name": name} for name in names], where, "share string, task int").collect()
    assert sorted(row.share for row in found) == sorted(names)
    assert len({row.task for row in found}) == count


@pytest.mark.parametrize("read", ["rows", "sums", "lines"])
def test_a_plan_is_not_with_every_task(spark: Any, read: str) -> None:
    def frame(count: int) -> Any:
        if read == "lines":
            files = tuple((f"/history/{number}.parquet", (1 << 30,)) for number in range(count))
            return ParquetLines(files).events(spark, lambda events: events, "offset bigint")
        pieces = [SegmentRange(f"/{number}", 0, 1, "t", 0, 1, 0, None, None, None) for number in range(count)]
        if read == "sums":
            return read_sums(spark, [[[piece]] for piece in pieces], values=True)
        return read_ranges(spark, [[piece] for piece in pieces], "offset bigint, timestamp timestamp")

    assert for_all_tasks(frame(MANY)) == for_all_tasks(frame(1))


def test_the_sums_of_a_log_are_not_with_every_task(spark: Any, tmp_path: Path) -> None:
    lines = spark.createDataFrame(
        [("p", "ok", "send", "orders-0", "a", 0, 5, 10)],
        "process string, type string, f string, partition string, value string, offset bigint, invoked_ns bigint,"
        " time_ns bigint",
    )
    log = spark.range(0, MANY, 1, 1).selectExpr(
        "'orders-0' place", "id bucket", "1L log_records", "xxhash64(id) log_sum"
    )
    kept: list[Any] = []

    def keep(frame: Any) -> Any:
        kept.append(frame)
        return frame

    place: TopicPartition = ("orders", 0)
    found = audit_values.folded(history(lines), {place: 0}, log, keep=keep)
    assert for_all_tasks(kept[0]) < 24 * MANY / 4
    assert [(row.place, row.offset) for row in found.claims.collect()] == [("orders-0", 0)]
