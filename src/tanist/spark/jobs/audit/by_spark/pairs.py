"""Operations of two lines, an invocation and its completion, as one line each.

Owns the pairing, for the sends and the transactions of a history alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def completed(lines: DataFrame, keys: Sequence[str], carried: Sequence[str]) -> DataFrame:
    """One line an operation: the columns `carried` as its completion has them, and in `planned` as its invocation has.

    `keys` name an open operation. An invocation that nothing follows is an operation of unknown outcome; a completion
    that follows no invocation has no `planned`. The lines have `time_ns`.
    """
    # A completion at the moment of its invocation stands behind it.
    order = Window.partitionBy(*keys).orderBy("time_ns", F.expr("type <> 'invoke'"))
    own = F.struct(*carried)
    paired = lines.withColumn("_before", F.lag(F.struct("type", "time_ns", own.alias("own"))).over(order))
    paired = paired.withColumn("_next", F.lead("type").over(order))
    paired = paired.where("type <> 'invoke' or _next is null or _next = 'invoke'")
    open_still, invoked = F.col("type") == "invoke", F.col("_before.type") == "invoke"
    began = F.when(open_still, F.col("time_ns")).when(invoked, F.col("_before.time_ns")).otherwise(F.col("invoked_ns"))
    return paired.withColumns(
        {
            **{name: F.when(~open_still, F.col(name)) for name in carried},
            "planned": F.when(open_still, own).when(invoked, F.col("_before.own")),
            "invoked_ns": began,
            "time_ns": F.when(~open_still, F.col("time_ns")),
            "type": F.when(open_still, "info").otherwise(F.col("type")),
        }
    ).drop("_before", "_next")
