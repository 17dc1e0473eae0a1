"""The hashes are Spark's: of bytes of every length, of nulls, and of columns one after the other."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tanist.spark.jobs.audit import spark_hashes


def test_bytes_have_the_hash_that_spark_gives_them(spark: Any) -> None:
    from pyspark.sql import functions as F

    rng = random.Random(5)
    values = [rng.randbytes(length) for length in [*range(140), 1_000, 4_099] for _ in range(2)] + [b"\xff" * 64]
    rng.shuffle(values)
    data = np.frombuffer(b"".join(values), np.uint8)
    lengths = np.array([len(value) for value in values])
    starts = np.cumsum(lengths) - lengths
    found = spark_hashes.of_bytes(data, starts, lengths).view(np.int64).tolist()
    frame = spark.createDataFrame([(number, value) for number, value in enumerate(values)], "n int, v binary")
    assert found == [row.h for row in frame.orderBy("n").select(F.xxhash64("v").alias("h")).collect()]


def test_null_leaves_the_seed_and_columns_follow_each_other(spark: Any) -> None:
    from pyspark.sql import functions as F

    nothing = spark_hashes.of_bytes(np.empty(0, np.uint8), np.array([0, 0]), np.array([-1, 0])).view(np.int64)
    numbers = np.array([0, 1, -1, 2**63 - 1, -(2**63), 4096], np.int64)
    pairs = spark_hashes.of_longs(numbers, numbers[::-1].copy()).view(np.int64).tolist()
    schema = "a bigint, b bigint"
    frame = spark.createDataFrame(list(zip(numbers.tolist(), numbers[::-1].tolist())), schema).coalesce(1)
    rows = frame.select(F.xxhash64("a", "b").alias("h"), F.xxhash64(F.lit(None).cast("binary")).alias("n")).collect()
    assert pairs == [row.h for row in rows]
    assert nothing.tolist() == [rows[0].n, spark.sql("select xxhash64(binary(''))").first()[0]]
    assert spark_hashes.of_longs(numbers[:0]).tolist() == []
