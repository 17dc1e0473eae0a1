"""Shares reach the task that they are for, and no other: what all tasks get does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from tanist.spark.jobs.audit.by_spark.logs import read_ranges, read_sums
from tanist.spark.jobs.audit.segment_ranges import SegmentRange
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


@pytest.mark.parametrize("read", ["rows", "sums"])
def test_a_plan_is_not_with_every_task(spark: Any, read: str) -> None:
    def frame(count: int) -> Any:
        pieces = [SegmentRange(f"/{number}", 0, 1, "t", 0, 1, 0, None, None, None) for number in range(count)]
        if read == "sums":
            return read_sums(spark, [[[piece]] for piece in pieces])
        return read_ranges(spark, [[piece] for piece in pieces], "offset bigint, timestamp timestamp")

    assert for_all_tasks(frame(MANY)) == for_all_tasks(frame(1))
