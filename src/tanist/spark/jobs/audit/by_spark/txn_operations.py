"""The transactions of a history, taken apart into sends and polls.

Owns `txn` of docs/history.md: the two lines of a transaction become one, and each of its `ops` a row with the fields of
a single operation. A send has the outcome of its transaction; a poll has happened whatever came of the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tanist.spark.jobs.audit.by_spark.pairs import completed

OPS_SCHEMA: Final = (
    "array<struct<f string, partition string, value string, offset bigint,"
    " records map<string, array<array<string>>>, invoked_ns bigint, time_ns bigint>>"
)


def sends_and_polls(lines: DataFrame, fields: Mapping[str, str]) -> tuple[DataFrame, DataFrame]:
    """Of lines with the columns `fields` and `ops`. Both have the columns `fields`; those of polls, `records` too."""
    done = completed(lines.where("f = 'txn'"), ("process",), ("ops",))
    done = done.withColumn("planned", F.col("planned.ops"))
    there = {field.name for field in done.schema["ops"].dataType.elementType.fields}
    # The completion of a transaction that is not committed may leave out the last of its sends.
    sent = F.when(F.col("type") == "ok", F.coalesce("ops", "planned")).otherwise(F.coalesce("planned", "ops"))

    def of_op(name: str, kind: str) -> F.Column:
        return F.col(f"_op.{name}").cast(kind) if name in there else F.lit(None).cast(kind)

    def rows(ops: F.Column, function: str, **columns: F.Column) -> DataFrame:
        apart = done.withColumn("_op", F.explode(ops)).where(F.col("_op.f") == function)
        own = {name: of_op(name, fields[name]) for name in ("partition", "value", "offset")}
        found = {"f": F.lit(function), **own, **columns}
        kept = [F.coalesce(found[name]).alias(name) if name in found else F.col(name) for name in fields]
        return apart.select(*kept, *(column.alias(name) for name, column in columns.items() if name not in fields))

    nothing = F.lit(None)
    sends = rows(sent, "send", acks=nothing.cast("string"), idempotent=nothing.cast("boolean"))
    polls = rows(
        F.col("ops"),
        "poll",
        type=F.lit("ok"),
        invoked_ns=F.coalesce(of_op("invoked_ns", "bigint"), F.col("invoked_ns")),
        time_ns=F.coalesce(of_op("time_ns", "bigint"), F.col("time_ns")),
        records=F.col("_op.records") if "records" in there else nothing,
    )
    return sends, polls
