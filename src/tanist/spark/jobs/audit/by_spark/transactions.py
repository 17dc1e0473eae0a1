"""Stage: the transactions of a log, and how each of their records came out: committed, aborted, or open.

Owns the rule over rows of `tanist-segments`: the first marker of the same producer behind a record ends its
transaction. A log is read for it only if it has transactions at all. Outcomes stay DataFrames; of open transactions,
which are few, a bounded number reaches the driver.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from tanist.spark.jobs.audit.by_spark.logs import Logs
from tanist.spark.jobs.audit.log_files import Holders
from tanist.spark.jobs.audit.result import OpenTransaction
from tanist.spark.jobs.audit.rules import ABORTED, COMMITTED, OPEN, OPEN_MAX
from tanist.wire.control import ControlKind

_STRETCH_OFFSETS: Final = 1 << 16
"""A task looks at so many offsets of a producer at once, however much it has written."""
_LOG: Final = ("topic", "partition", "replica")
_COLUMNS: Final = (
    *_LOG, "leader_epoch", "offset", "key", "producer_id", "producer_epoch", "is_control", "is_transactional", "damage",
)  # fmt: skip
_KIND: Final = "int(conv(hex(substring(key, 3, 2)), 16, 10))"
"""Of a control record: its key is a version and a type, of two bytes each."""


def outcomes(logs: Logs, holders: Holders) -> DataFrame:
    """Each record of a transaction in these logs: `_LOG`, leader_epoch, offset, producer, outcome."""
    return decided(logs.rows(_COLUMNS, holders=holders).where("is_transactional"))


def decided(rows: DataFrame) -> DataFrame:
    """The same of rows of transactions, markers among them.

    A record's marker is in its stretch of offsets, or is the first of a later one: of a stretch, one row is enough.
    """
    kind = F.expr(f"if(is_control, {_KIND}, null)")
    # Null equals nothing, and a log of nobody's has no replica.
    whose = F.struct(F.coalesce("replica", F.lit(-1)).alias("replica"), "topic", "partition", "producer_id")
    sound = rows.where("damage is null").withColumns(
        {"_kind": kind, "_whose": whose, "_stretch": F.expr(f"offset div {_STRETCH_OFFSETS}")}
    )
    here = _behind("_whose", "_stretch", order="offset").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    later = _behind("_whose", order="_stretch").rowsBetween(Window.unboundedPreceding, -1)
    first = F.min(F.when(F.col("is_control"), F.struct("offset", "_kind")))["_kind"]
    following = (
        sound.groupBy("_whose", "_stretch")
        .agg(first.alias("_first"))
        .select("_whose", "_stretch", F.last("_first", ignorenulls=True).over(later).alias("_later"))
    )
    sound = sound.withColumn("_here", F.last("_kind", ignorenulls=True).over(here)).where("not is_control")
    judged = sound.join(following, ["_whose", "_stretch"]).withColumn("_kind", F.coalesce("_here", "_later"))
    outcome = (
        F.when(F.col("_kind") == int(ControlKind.COMMIT), COMMITTED)
        .when(F.col("_kind") == int(ControlKind.ABORT), ABORTED)
        .otherwise(OPEN)
    )
    return judged.select(*_LOG, "leader_epoch", "offset", "producer_id", "producer_epoch", outcome.alias("outcome"))


def _behind(*keys: str, order: str) -> WindowSpec:
    return Window.partitionBy(*keys).orderBy(F.col(order).desc())


def aborted_places(found: DataFrame) -> DataFrame:
    """Of `outcomes`: place ("orders-3") and offset of each record that a marker has aborted."""
    rows = found.where(F.col("outcome") == ABORTED)
    return rows.select(F.concat("topic", F.lit("-"), "partition").alias("place"), "offset")


def has_transactions(logs: Logs, holders: Holders) -> bool:
    """Whether there are any, by the headers of batches alone."""
    return bool(logs.rows((*_LOG, "is_transactional"), holders=holders).where("is_transactional").limit(1).count())


def open_transactions(found: DataFrame) -> list[OpenTransaction]:
    """Of `outcomes`: those that have not ended, the oldest of each partition first; at most `OPEN_MAX`."""
    rows = (
        found.where(F.col("outcome") == OPEN)
        .groupBy("topic", "partition", "producer_id")
        .agg(
            F.max("producer_epoch").alias("producer_epoch"), F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"), F.count("*").alias("records"),
        )
        .orderBy("topic", "partition", "first_offset")
        .limit(OPEN_MAX)
    )  # fmt: skip
    return [OpenTransaction(**row.asDict()) for row in rows.collect()]
