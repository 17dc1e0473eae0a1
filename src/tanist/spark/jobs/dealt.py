"""Work that a job has cut into shares itself, as one DataFrame: a task for each share, and to each task its own alone.

Owns the way of shares to tasks: as rows, one for each task. They must never be in the function that the tasks run, nor
in an option: what is there goes to every task, and is read again by each process that Spark asks about the plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def usual_tasks(spark: SparkSession) -> int:
    """How many tasks a job has that nothing says more of: those of a shuffle."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def dealt(
    spark: SparkSession, shares: Sequence[Any], function: Callable[[Any], Iterator[Any]], schema: str | StructType
) -> DataFrame:
    """What `function` makes of the shares, as Arrow batches of `schema`. A share is what JSON can hold."""
    import pyarrow as pa

    texts = [json.dumps(share) for share in shares]
    table = pa.table({"task": pa.array(range(len(texts)), pa.int32()), "share": pa.array(texts, pa.string())})
    rows = spark.createDataFrame(table).repartitionById(max(1, len(texts)), "task")
    return rows.mapInArrow(partial(_each, function), schema)


def _each(function: Callable[[Any], Iterator[Any]], batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for text in batch.column("share").to_pylist():
            yield from function(json.loads(text))
