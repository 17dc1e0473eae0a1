"""The transactions of a history, taken apart into sends and polls.

Owns `txn` of docs/history.md: the two lines of a transaction become one, and each of its `ops` a row with the fields of
a single operation. A send has the outcome of its transaction; a poll has happened whatever came of the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

OPS_SCHEMA: Final = (
    "array<struct<f string, partition string, value string, offset bigint,"
    " records map<string, array<array<string>>>, invoked_ns bigint, time_ns bigint>>"
)
_INVOKE: Final = "type = 'invoke'"


def sends_and_polls(lines: DataFrame, fields: Mapping[str, str]) -> tuple[DataFrame, DataFrame]:
    """Of lines with the columns `fields` and `ops`. Both have the columns `fields`; those of polls, `records` too."""
    done = _completed(lines.where("f = 'txn'"))
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


def _completed(lines: DataFrame) -> DataFrame:
    """One line a transaction: `planned` has the `ops` of its invocation. One that nothing follows is unknown."""
    order = Window.partitionBy("process").orderBy("time_ns", F.expr("type <> 'invoke'"))
    before = F.lag(F.struct("type", "time_ns", "ops")).over(order)
    paired = lines.withColumn("_before", before).withColumn("_next", F.lead("type").over(order))
    paired = paired.where(f"not ({_INVOKE}) or _next is null or _next = 'invoke'")
    open_still = F.expr(_INVOKE)
    invoked = F.col("_before.type") == "invoke"
    began = F.when(open_still, F.col("time_ns")).when(invoked, F.col("_before.time_ns")).otherwise(F.col("invoked_ns"))
    planned = F.when(open_still, F.col("ops")).when(invoked, F.col("_before.ops"))
    return (
        paired.withColumn("planned", planned)
        .withColumn("invoked_ns", began)
        .withColumn("ops", F.when(~open_still, F.col("ops")))
        .withColumn("time_ns", F.when(~open_still, F.col("time_ns")))
        .withColumn("type", F.when(open_still, "info").otherwise(F.col("type")))
        .drop("_before", "_next")
    )
