"""The replicas' logs as DataFrames: all of a column set, or only some stretches of offsets.

`SegmentLogs` deals out the byte ranges of segment files (`log_files`) to tasks that read them; `FrameLogs` serves an
audit of DataFrames from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tanist.spark.jobs.audit import sums as audit_sums
from tanist.spark.jobs.audit.by_spark import sums as spark_sums
from tanist.spark.jobs.audit.log_files import COLUMNS, Holders, Known, LogFiles, Near, fewer
from tanist.spark.jobs.audit.segment_ranges import SegmentRange, rows_of, sums_of_group
from tanist.spark.jobs.dealt import dealt, usual_tasks

_CONDITIONS_MAX: Final = 32
_TASK_BYTES: Final = 128 << 20
_VALUE_HASH: Final = "value_hash"

Dealt = TypeVar("Dealt")
Fields: TypeAlias = Sequence[Any]
"""Those of a range, as they come to a task."""

_KINDS: Final = {**COLUMNS, _VALUE_HASH: "bigint"}


class Logs(Protocol):
    """Where an audit reads. Rows of `COLUMNS` and `value_hash`, as many of them as are named."""

    def known(self) -> Known: ...

    def rows(self, columns: Sequence[str], *, holders: Holders = None, near: Near = None) -> DataFrame:
        """Of all replicas, or of these only; all offsets, or these and some between them."""
        ...

    def sums(self) -> DataFrame:
        """The sums of all replicas' records by buckets: rows of `audit_sums.SCHEMA`, perhaps several for a bucket."""
        ...

    def salvaged(self, columns: Sequence[str], near: Near) -> DataFrame | None:
        """Rows of the salvage."""
        ...


class SegmentLogs:
    """Segment files below a folder.

    They are planned here, and read by tasks that get their byte ranges: a look at a few offsets of one replica opens
    one file, and Spark is not asked to plan each stretch by itself.
    """

    def __init__(self, spark: SparkSession, folder: str | Path, topics: Sequence[str] = ()) -> None:
        self._spark = spark
        self._files = LogFiles(folder, topics)

    def known(self) -> Known:
        return self._files.known()

    def rows(self, columns: Sequence[str], *, holders: Holders = None, near: Near = None) -> DataFrame:
        return self._read(self._files.ranges(holders=holders, near=near), columns)

    def sums(self) -> DataFrame:
        return read_sums(self._spark, self._dealt(self._files.groups(), _bytes_of))

    def salvaged(self, columns: Sequence[str], near: Near) -> DataFrame:
        return self._read(self._files.salvaged(near), columns)

    def _read(self, ranges: Sequence[SegmentRange], columns: Sequence[str]) -> DataFrame:
        names = list(dict.fromkeys("value" if name == _VALUE_HASH else name for name in columns))
        schema = ", ".join(f"{name} {_KINDS[name]}" for name in names)
        rows = read_ranges(self._spark, self._dealt(ranges, lambda each: each.end - each.start), schema)
        return _named(rows, columns)

    def _dealt(self, ranges: Iterable[Dealt], bytes_of: Callable[[Dealt], int]) -> list[list[Dealt]]:
        """The largest first, in turn."""
        ordered = sorted(ranges, key=bytes_of, reverse=True)
        total_bytes = sum(map(bytes_of, ordered))
        tasks = max(1, min(len(ordered), max(usual_tasks(self._spark), total_bytes // _TASK_BYTES)))
        return [ordered[number::tasks] for number in range(tasks)]


def _bytes_of(group: Sequence[SegmentRange]) -> int:
    return sum(each.end - each.start for each in group)


def read_ranges(spark: SparkSession, shares: Sequence[Sequence[SegmentRange]], schema: str) -> DataFrame:
    """The rows of `tanist-segments` with these columns, of these ranges."""
    columns = [each.split()[0] for each in schema.split(",")]
    return dealt(spark, shares, partial(_rows_of_share, columns), schema)


def read_sums(spark: SparkSession, shares: Sequence[Sequence[Sequence[SegmentRange]]]) -> DataFrame:
    """The sums of these ranges: rows of `audit_sums.SCHEMA`, several for a bucket that several ranges share.

    A share has groups of ranges: those of a group are the same stretch of several replicas, and have most batches in
    common.
    """
    return dealt(spark, shares, _sums_of_share, audit_sums.SCHEMA)


def _rows_of_share(columns: Sequence[str], share: Sequence[Fields]) -> Iterator[Any]:
    for fields in share:
        yield from rows_of(SegmentRange(*fields), columns)


def _sums_of_share(share: Sequence[Sequence[Fields]]) -> Iterator[Any]:
    for group in share:
        yield from sums_of_group([SegmentRange(*fields) for fields in group])


class FrameLogs:
    """DataFrames with the columns of `tanist-segments`, as far as the audit needs them."""

    def __init__(self, log: DataFrame, salvage: DataFrame | None = None) -> None:
        self._log = log
        self._salvage = salvage

    def known(self) -> Known:
        found = self._log.groupBy("topic", "partition").agg(F.collect_set("replica").alias("replicas")).collect()
        return Known({(row.topic, row.partition): tuple(sorted(row.replicas)) for row in found})

    def rows(self, columns: Sequence[str], *, holders: Holders = None, near: Near = None) -> DataFrame:
        found = self._log
        if holders is not None:
            spark = found.sparkSession
            table = spark.createDataFrame(list(holders), "topic string, partition int, replica int")
            found = found.join(F.broadcast(table), ["topic", "partition", "replica"], "left_semi")
        return _named(_within(found, near), columns)

    def sums(self) -> DataFrame:
        names = ("topic", "partition", "replica", *audit_sums.COLUMNS)
        return spark_sums.of_rows(self.rows(names))

    def salvaged(self, columns: Sequence[str], near: Near) -> DataFrame | None:
        return None if self._salvage is None else _named(_within(self._salvage, near), columns)


def _within(frame: DataFrame, near: Near) -> DataFrame:
    if near is None:
        return frame
    condition = F.lit(False)
    for each in fewer(near, _CONDITIONS_MAX):
        same = (F.col("topic") == each.topic) & (F.col("partition") == each.partition)
        condition = condition | (same & F.col("offset").between(each.first, each.last))
    return frame.where(condition)


def _named(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    if "value_hash" in columns and "value" in frame.columns:
        frame = frame.withColumn("value_hash", F.xxhash64("value"))
    there = set(frame.columns)
    # A column that is absent has the value of a sound record.
    sound = {"is_control": F.lit(False), "is_transactional": F.lit(False), "crc_ok": F.lit(True)}
    return frame.select(
        *(
            F.col(name) if name in there else sound.get(name, F.lit(None)).cast(_KINDS[name]).alias(name)
            for name in dict.fromkeys(columns)
        )
    )
