"""Level one of a log by Spark: sums put together, and those of a log that is a DataFrame."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tanist.spark.jobs.audit.sums import BUCKET

_BY: Final = ("topic", "partition", "replica", "leader_epoch", "bucket")


def together(sums: DataFrame) -> DataFrame:
    """One row for each replica, epoch and bucket."""
    return sums.groupBy(*_BY).agg(
        F.sum("records").alias("records"), F.expr("bit_xor(hash)").alias("hash"),
        F.min("first_offset").alias("first_offset"), F.max("last_offset").alias("last_offset"),
        F.sum("damages").alias("damages"), F.sum("transactional").alias("transactional"),
    )  # fmt: skip


def of_rows(rows: DataFrame) -> DataFrame:
    """Of a DataFrame with the columns of `_BY`, but for the bucket, and those of `audit_sums.COLUMNS`."""
    sound = "damage is null"
    return rows.groupBy(*_BY[:-1], F.expr(BUCKET).alias("bucket")).agg(
        F.expr(f"count_if({sound})").alias("records"),
        F.expr(f"bit_xor(if({sound}, xxhash64(offset, leader_epoch, fingerprint), 0L))").alias("hash"),
        F.expr(f"min(if({sound}, offset, null))").alias("first_offset"),
        F.expr(f"max(if({sound}, offset, null))").alias("last_offset"),
        F.expr("count_if(damage is not null)").alias("damages"),
        F.expr(f"count_if({sound} and is_transactional)").alias("transactional"),
    )  # fmt: skip
