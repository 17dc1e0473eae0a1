"""Histories of clients as two tables: sends and polled records.

Owns the way from the lines of docs/history.md, as JSON Lines or Parquet, to one row a send and one row a polled record.
An operation of two lines is put together here. Nothing is judged, and nothing is collected.

`value` is compared with what the log holds, byte by byte as UTF-8: integers as their digits, arrays as their JSON.
Values go on as 64-bit hashes; of 10^8 values two are mistaken for each other once in 3,700 audits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tanist.lab.history.operation import NEMESIS
from tanist.spark.jobs.audit.by_spark import stored_history
from tanist.spark.jobs.audit.by_spark.pairs import completed
from tanist.spark.jobs.audit.by_spark.txn_operations import OPS_SCHEMA, sends_and_polls
from tanist.spark.jobs.history_files import NO_COLUMN, NO_TIME, HistoryUnfit, are_parquet, files_of
from tanist.spark.stores import is_stored, path_of

POLL: Final = 1
SEND: Final = 0

_JSON_SCHEMA: Final = (
    "process string, type string, f string, id string, time_ns bigint, invoked_ns bigint, partition string,"
    " value string, offset bigint, acks string, idempotent boolean, aborted boolean, isolation string,"
    f" records map<string, array<array<string>>>, ops {OPS_SCHEMA}"
)
_FIELDS: Final = {
    "process": "string", "type": "string", "f": "string", "id": "string", "time_ns": "bigint", "invoked_ns": "bigint",
    "partition": "string", "value": "string", "offset": "bigint", "acks": "string", "idempotent": "boolean",
    "aborted": "boolean", "isolation": "string",
}  # fmt: skip
_COLUMNS: Final = (*_FIELDS, "records", "ops")


@dataclass(frozen=True, slots=True)
class History:
    """The operations of the clients as one table, so that one pass covers sends and polls."""

    events: DataFrame
    """One row for each send, and for each polled record: side (`SEND` or `POLL`), process, place ("orders-3"), value,
    hash, offset, began_ns (null if nobody knows), ended_ns. Of sends: outcome (ok, fail, info), promised (acks=all),
    ordered (idempotent, which no producer is without acks=all), aborted. Of polls: committed (read_committed)."""

    def of_topics(self, topics: Sequence[str]) -> History:
        """Only what was sent to these topics, or polled from them."""
        return History(self.events.where(F.regexp_replace("place", "-[0-9]+$", "").isin(list(topics))))

    @property
    def sends(self) -> DataFrame:
        return self.events.where(f"side = {SEND}")

    @property
    def polls(self) -> DataFrame:
        return self.events.where(f"side = {POLL}")


def read_history(spark: SparkSession, paths: Sequence[str | Path]) -> History:
    """Of files, or of folders of Parquet files."""
    parquet = are_parquet(paths)
    # Java keeps the folder that was the current one when it started.
    named = [path_of(path).absolute() for path in paths]
    stored = any(map(is_stored, named))
    if parquet and not stored:
        return history(spark.read.parquet(*map(str, named)))
    # Else an array is what its line has between its brackets, blanks included, and another line's array another value.
    spark.conf.set("spark.sql.json.enableExactStringParsing", "false")
    if not stored:
        operations = spark.read.schema(_JSON_SCHEMA).json([str(path) for path in named])
    elif parquet:
        operations = stored_history.rows(spark, [file for path in named for file in files_of(path)], _COLUMNS)
    else:
        text = stored_history.lines(spark, [str(path) for path in named])
        operations = text.select(F.from_json("line", _JSON_SCHEMA).alias("line")).select("line.*")
    # Read and parsed once: an audit looks at a history several times.
    return History(history(operations).events.persist())


def history(operations: DataFrame) -> History:
    """Of lines as a DataFrame, with the columns of docs/history.md; those that are absent are null."""
    lines = _lines(operations)
    return History(_all_events(lines, _kinds(lines)))


def _lines(operations: DataFrame) -> DataFrame:
    there = dict(operations.dtypes)
    for name in ("process", "type", "f"):
        if name not in there:
            raise HistoryUnfit(NO_COLUMN.format(name))
    return operations.select(
        *(_field(name, kind, there) for name, kind in _FIELDS.items()),
        *(F.col(name) for name in ("records", "ops") if name in there),
    ).where(F.col("process") != F.lit(NEMESIS))


def _all_events(lines: DataFrame, kinds: _Kinds) -> DataFrame:
    if kinds.untimed:
        raise HistoryUnfit(NO_TIME)
    if kinds.pairs:
        events = _events(_paired(lines.where("f = 'send'"))).unionByName(_events(lines.where("f = 'poll'")))
    else:
        events = _events(lines)
    parts = [_several(lines, dict(lines.dtypes).get("records"))]
    if "ops" in lines.columns and kinds.transactions:
        sends, polls = sends_and_polls(lines, _FIELDS)
        parts += [_events(sends), _events(polls), _several(polls, dict(polls.dtypes)["records"])]
    for part in parts:
        events = events if part is None else events.unionByName(part)
    return events


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The lines that a history has."""

    pairs: bool
    """Sends of two lines."""
    untimed: bool
    """Lines that have to be put together, and have no time."""
    transactions: bool


def _kinds(lines: DataFrame) -> _Kinds:
    """In one pass, and of Parquet over the row groups alone that may have such lines."""
    few = lines.where("f = 'txn' or (f = 'send' and (type = 'invoke' or time_ns is null))")
    found = few.agg(
        F.bool_or(F.expr("f = 'send' and type = 'invoke'")).alias("pairs"),
        F.bool_or(F.expr("type = 'invoke' and time_ns is null")).alias("invoked"),
        F.bool_or(F.expr("f = 'send' and time_ns is null")).alias("sent"),
        F.bool_or(F.expr("f = 'txn'")).alias("transactions"),
    ).first()
    pairs = bool(found.pairs)
    return _Kinds(pairs, bool(found.invoked) or (pairs and bool(found.sent)), bool(found.transactions))


def _field(name: str, kind: str, there: dict[str, str]) -> F.Column:
    if name not in there:
        return F.lit(None).cast(kind).alias(name)
    return F.col(name) if there[name] == kind else F.col(name).cast(kind).alias(name)


def _events(lines: DataFrame) -> DataFrame:
    """Of operations that stand on one line each."""
    is_send = F.col("f") == "send"
    promised = F.coalesce(F.col("acks").isin("all", "-1"), F.lit(True))
    known = lines.where("(f = 'send' or (f = 'poll' and type = 'ok' and offset is not null)) and value is not null")
    return known.where("partition is not null").select(
        F.when(is_send, SEND).otherwise(POLL).cast("int").alias("side"),
        "process",
        F.col("partition").alias("place"),
        "value",
        value_hash(F.col("value")).alias("hash"),
        "offset",
        F.col("invoked_ns").alias("began_ns"),
        F.col("time_ns").alias("ended_ns"),
        F.when(is_send, F.col("type")).alias("outcome"),
        promised.alias("promised"),
        (promised & F.coalesce("idempotent", F.lit(True))).alias("ordered"),
        F.coalesce("aborted", F.lit(False)).alias("aborted"),
        F.coalesce(F.col("isolation") == "read_committed", F.lit(False)).alias("committed"),
    )


def _paired(sends: DataFrame) -> DataFrame:
    """Invocations with their completions. An invocation that nothing follows is a send of unknown outcome."""
    carried = ("partition", "value", "acks", "idempotent")
    done = completed(sends, ("process", "id"), carried)
    return done.withColumns({name: F.coalesce(name, f"planned.{name}") for name in carried}).drop("planned")


def _several(lines: DataFrame, kind: str | None) -> DataFrame | None:
    """Records of polls that gave several; None if lines cannot have such."""
    if kind is None or kind == "void":
        return None
    polls = lines.where("f = 'poll' and type = 'ok' and records is not null")
    rest = [name for name in _FIELDS if name not in ("partition", "offset", "value")]
    if kind.startswith("map"):
        pairs = polls.select(*rest, F.explode("records").alias("partition", "_pairs"))
        apart = pairs.select(*rest, "partition", F.explode("_pairs").alias("_pair"))
        offset, value, partition = F.col("_pair")[0], F.col("_pair")[1], F.col("partition")
    else:
        apart = polls.select(*rest, F.explode("records").alias("_one"))
        offset, value, partition = (F.col(f"_one.{name}") for name in ("offset", "value", "partition"))
    return _events(
        apart.withColumn("partition", partition.cast("string"))
        .withColumn("offset", offset.cast("bigint"))
        .withColumn("value", value.cast("string"))
    )


def value_hash(value: F.Column) -> F.Column:
    """The same of a history's text and of a log's bytes: Spark hashes both by their bytes."""
    return F.xxhash64(value)
