"""Topics into tables, each record once, and tables back into topics.

Owns the order of a commit. Spark's query says which offsets a batch has, and says the same again after a crash; the
batch is written by the tasks into a folder of its own, anew if it was there; then one commit of a Delta log adds its
files and, in the same breath, the query's id with the batch's number. A batch that has a number which the table knows
is done. So whatever is killed, and when, each record is in the table once. Readers of the plain folder see whole
batches only if they look for `_SUCCESS`; readers of the table always do.

Delta's log is written by the `deltalake` package: Spark's own Delta libraries do not run on PySpark 4.3
(docs/decisions/0003-delta-without-the-jvm.md). Records never pass through the driver, only the names of files.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from tanist.spark.jobs import Progress, tables
from tanist.spark.jobs.preconditions import NothingToJudge, listed
from tanist.spark.jobs.tables import PARTITIONED_BY, TableKind, TableUnfit, partition_of

COMPACTED_EVERY: Final = 64
"""Batches. Each has a file for each partition that had records."""
_SMALL_BYTES: Final = 128 << 20
_KEPT_S: Final = 3600
"""A file that was replaced: a query that began before may read it so long."""
_LOG_KEPT: Final = {"delta.logRetentionDuration": "interval 1 days"}
"""A commit every few seconds is 500,000 files in Delta's default of 30 days."""
_ROWS_A_FILE: Final = 4_000_000


@dataclass(slots=True)
class IngestResult:
    """The records that a run has added."""

    batches: int = 0
    records: int = 0
    known: int = 0
    """Batches that the table had already: an earlier run was killed between its commit and Spark's."""
    files: int = 0
    """Written for batches; a query that runs for months has no list of them."""


def ingest(
    spark: SparkSession,
    bootstrap: str,
    topics: Sequence[str],
    table: str | Path,
    *,
    kind: TableKind = "delta",
    every: str | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress = lambda _: None,
) -> IngestResult:
    """Append what the topics have, and the table lacks; with `every` ("5 seconds") go on until the query is stopped.

    The table keeps how far it has come, so that the same call goes on where the last one ended, or was killed.
    """
    tables.fit_to_ingest(bootstrap, topics, Path(table), kind, every, options or {})
    sink = TableSink(Path(table).absolute(), kind, progress)
    reader = spark.readStream.format("tanist").options(**tables.source_options(bootstrap, topics, options or {}))
    writer = reader.load().writeStream.foreachBatch(sink.take).option("checkpointLocation", str(sink.checkpoint))
    writer = writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=every)
    query = writer.start()
    query.awaitTermination()
    if not sink.result.records and not tables.files_of(sink.table):
        raise NothingToJudge(f"no record of {listed(sorted(topics))} came: the table is still empty")
    return sink.result


class TableSink:
    """Writes the batches of one query; `take` is for `foreachBatch`."""

    def __init__(self, table: Path, kind: TableKind, progress: Progress = lambda _: None) -> None:
        self.table = table
        self._kind = kind
        self._progress = progress
        self._opened: Any = None
        self.result = IngestResult()

    @property
    def checkpoint(self) -> Path:
        return self.table / tables.CHECKPOINT

    def take(self, batch: DataFrame, number: int) -> None:
        if self._kind == "delta" and self._committed() >= number:
            self.result.known += 1
            return
        began_s = time.monotonic()
        # Delta's reader wants microseconds; Spark's default is a form of 12 bytes that nobody else writes any more.
        batch.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        files = self._written(batch, f"batch={number:012d}")
        if self._kind == "delta" and files:
            self._commit(batch, files, number)
        records = sum(file.records for file in files)
        self.result.batches += 1
        self.result.records += records
        self.result.files += len(files)
        self._progress(f"batch {number}: {records} records in {time.monotonic() - began_s:.1f} s")
        if self._kind == "delta" and number % COMPACTED_EVERY == COMPACTED_EVERY - 1:
            self._compact(batch.sparkSession, number)

    def _delta(self) -> Any:
        """The table as it is now, or None. Its log is read once, and what was added since."""
        from deltalake import DeltaTable

        if self._opened is None and DeltaTable.is_deltatable(str(self.table)):
            self._opened = DeltaTable(str(self.table))
        elif self._opened is not None:
            self._opened.update_incremental()
        return self._opened

    def _committed(self) -> int:
        """The last batch of this query that the table has; -1: none."""
        delta = self._delta()
        version = None if delta is None else delta.transaction_version(self._query_id())
        return -1 if version is None else int(version)

    def _commit(self, batch: DataFrame, files: Sequence[WrittenFile], number: int) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(batch.schema, timezone="UTC")
        by = list(PARTITIONED_BY)
        if self._opened is None:
            self._opened = DeltaTable.create(
                str(self.table), schema, mode="ignore", partition_by=by, configuration=_LOG_KEPT
            )
        once = CommitProperties(app_transactions=[Transaction(self._query_id(), number)])
        self._delta().create_write_transaction(
            [file.added(new=True) for file in files], "append", schema, partition_by=by, commit_properties=once
        )

    def _compact(self, spark: SparkSession, number: int) -> None:
        """Small files of a partition become one, in a commit of its own. Killed before it, the table has the old ones.

        Those that it replaces stay for an hour, for those who read them.
        """
        from deltalake.transaction import RemoveAction

        delta = self._delta()
        now = delta.get_add_actions(flatten=True)
        active = dict(zip(now.column("path").to_pylist(), now.column("size_bytes").to_pylist()))
        small: dict[tuple[str, ...], list[str]] = {}
        for path, size in active.items():
            if size < _SMALL_BYTES:
                small.setdefault(Path(path).parts[-3:-1], []).append(path)
        old = sorted(path for paths in small.values() if len(paths) > 1 for path in paths)
        needed = set(active)
        if old:
            rows = _records(spark, self.table, [str(self.table / path) for path in old])
            rows = rows.repartition(*PARTITIONED_BY).sortWithinPartitions(*PARTITIONED_BY, "offset")
            new = self._written(rows, f"batch={number:012d}-compacted")
            now_ms = time.time_ns() // 1_000_000
            removed = [RemoveAction(path, False, now_ms, active[path], partition_of(path)) for path in old]
            delta.create_write_transaction(
                [*(file.added(new=False) for file in new), *removed],
                "append", delta.schema(), partition_by=list(PARTITIONED_BY),
            )  # fmt: skip
            needed = needed - set(old) | {file.path for file in new}
            self._progress(f"{len(old)} small files are {len(new)} now")
        self._sweep(needed, time.time() - _KEPT_S)

    def _sweep(self, active: Iterable[str], before_s: float) -> None:
        """Folders of batches of which the table has nothing any more."""
        needed = {Path(path).parts[1] for path in active}
        for folder in (self.table / tables.DATA).iterdir():
            if folder.name not in needed and folder.stat().st_mtime < before_s:
                shutil.rmtree(folder, ignore_errors=True)

    def _written(self, rows: DataFrame, name: str) -> list[WrittenFile]:
        """In a folder of the table's data, anew if it is there."""
        folder = self.table / tables.DATA / name
        written = rows.write.mode("overwrite").partitionBy(*PARTITIONED_BY)
        written.option("maxRecordsPerFile", _ROWS_A_FILE).parquet(str(folder))
        return list(_files(self.table, folder))

    def _query_id(self) -> str:
        """Spark's, which a query keeps for as long as its checkpoint."""
        try:
            return str(json.loads((self.checkpoint / "metadata").read_text())["id"])
        except (OSError, ValueError, KeyError) as error:
            raise TableUnfit(f"{self.checkpoint} is no checkpoint: {error}") from error


@dataclass(frozen=True, slots=True)
class WrittenFile:
    path: str
    """Below the table."""
    size_bytes: int
    modified_ms: int
    records: int
    stats: str
    """As Delta's log has them, so that readers leave out files by their offsets."""

    def added(self, *, new: bool) -> Any:
        """`new`: its records were not in the table before."""
        from deltalake.transaction import AddAction

        return AddAction(self.path, self.size_bytes, partition_of(self.path), self.modified_ms, new, self.stats)


def _files(table: Path, folder: Path) -> Iterator[WrittenFile]:
    import pyarrow.parquet as pq

    for path in sorted(folder.rglob("*.parquet")):
        about = pq.read_metadata(path)
        status = path.stat()
        yield WrittenFile(
            str(path.relative_to(table)), status.st_size, int(status.st_mtime * 1000), about.num_rows, _stats(about)
        )


def _stats(about: Any) -> str:
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    names = about.schema.to_arrow_schema().names
    number = names.index("offset")
    for group in range(about.num_row_groups):
        found = next(
            column.statistics
            for column in (about.row_group(group).column(each) for each in range(about.num_columns))
            if column.path_in_schema == names[number]
        )
        if found is not None and found.has_min_max:
            least["offset"] = min(found.min, least.get("offset", found.min))
            most["offset"] = max(found.max, most.get("offset", found.max))
    return json.dumps({"numRecords": about.num_rows, "minValues": least, "maxValues": most})


def read_table(spark: SparkSession, table: str | Path) -> DataFrame:
    """The records of a table: of a Delta log's files if there is one, else of whole batches in the folder."""
    return _records(spark, Path(table).absolute(), tables.records_of(table))


def _records(spark: SparkSession, table: Path, files: Iterable[str]) -> DataFrame:
    return spark.read.option("basePath", str(table / tables.DATA)).parquet(*files).drop("batch")


def egress(
    spark: SparkSession,
    table: str | Path,
    bootstrap: str,
    *,
    topic: str | None = None,
    keep_partitions: bool = True,
    options: Mapping[str, str] | None = None,
    progress: Progress = lambda _: None,
) -> int:
    """Write a table's records into their topics, or into `topic`; gives how many. At least once, as Spark's own sink.

    The order within a partition is that of the offsets, if partitions are kept.
    """
    tables.fit_to_egress(bootstrap, table, topic, keep_partitions=keep_partitions, options=options)
    records = read_table(spark, table)
    names = ["key", "value", *(name for name in ("headers",) if name in records.columns)]
    records = records.select(*names, "topic", "partition", "offset")
    count = int(records.count())
    progress(f"writing {count} records")
    if topic is not None:
        from pyspark.sql import functions as F

        records = records.withColumn("topic", F.lit(topic))
    if keep_partitions:
        records = records.repartition("topic", "partition").sortWithinPartitions("topic", "partition", "offset")
        records = records.select(*names, "topic", "partition")
    else:
        records = records.select(*names, "topic")
    writer = records.write.format("tanist").option("kafka.bootstrap.servers", bootstrap)
    for name, value in (options or {}).items():
        writer = writer.option(name, value)
    writer.mode("append").save()
    return count
