"""Topics into tables, each record once, and tables back into topics.

Owns the order of a commit. Spark's query says which offsets a batch has, and says the same again after a crash; the
tasks write the batch into files that nobody knows; then one commit of a Delta log names them and, in the same breath,
the query's id with the batch's number. A batch that has a number which the table knows is done. So whatever is killed,
and when, each record is in the table once; what a killed batch has left is swept later. Of plain files, a rename shows
a batch. Readers of the plain folder see whole batches only if they look for `_SUCCESS`; readers of the table always do.

Files and log are written by the `deltalake` package, in a folder or in an object store: Spark's own Delta libraries do
not run on PySpark 4.3 (docs/decisions/0003-delta-without-the-jvm.md). Records pass through the driver only when small
files are made one.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from tanist.spark.jobs import Progress, delta_files, tables
from tanist.spark.jobs.dealt import usual_tasks
from tanist.spark.jobs.delta_files import WrittenFile
from tanist.spark.jobs.preconditions import NothingToJudge, listed
from tanist.spark.jobs.tables import PARTITIONED_BY, TableKind, TableUnfit
from tanist.spark.stores import failing, is_stored, path_of

COMPACTED_EVERY: Final = 64
"""Batches. Each has a file for each partition that had records."""
_SMALL_BYTES: Final = 128 << 20
_KEPT_HOURS: Final = 1
"""A file that was replaced: a query that began before may read it so long."""
_LOG_KEPT: Final = {"delta.logRetentionDuration": "interval 1 days"}
"""A commit every few seconds is 500,000 files in Delta's default of 30 days."""
_MEASURED: Final = "offset"


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
    checkpoint: str | Path | None = None,
    every: str | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress = lambda _: None,
) -> IngestResult:
    """Append what the topics have, and the table lacks; with `every` ("5 seconds") go on until the query is stopped.

    The checkpoint, in the table's folder unless it is named, keeps how far the query has come, so that the same call
    goes on where the last one ended, or was killed. Spark writes it: an address needs Hadoop's jar for that store.
    """
    tables.fit_to_ingest(bootstrap, topics, table, kind, every, options or {}, checkpoint=checkpoint)
    sink = TableSink(table, kind, checkpoint, progress)
    sink.require_own_table(spark)
    reader = spark.readStream.format("tanist").options(**tables.source_options(bootstrap, topics, options or {}))
    writer = reader.load().writeStream.foreachBatch(sink.take).option("checkpointLocation", sink.checkpoint)
    writer = writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=every)
    query = writer.start()
    query.awaitTermination()
    if not sink.result.records and not tables.files_of(table):
        raise NothingToJudge(f"no record of {listed(sorted(topics))} came: the table is still empty")
    return sink.result


class TableSink:
    """Writes the batches of one query; `take` is for `foreachBatch`."""

    def __init__(
        self,
        table: str | Path,
        kind: TableKind,
        checkpoint: str | Path | None = None,
        progress: Progress = lambda _: None,
    ) -> None:
        self.table = str(path_of(table).absolute())
        self.checkpoint = tables.checkpoint_of(table, checkpoint)
        self._kind = kind
        self._progress = progress
        self._opened: Any = None
        self._query: str | None = None
        self.result = IngestResult()

    def require_own_table(self, spark: SparkSession) -> None:
        """`TableUnfit` if the table has records, and not of the query of this checkpoint."""
        query = self._query_id(spark)
        with failing(self.table):
            if self._kind == "parquet" or not tables.files_of(self.table):
                return
            if query is None or self._delta().transaction_version(query) is None:
                raise TableUnfit(tables.not_of(self.table, self.checkpoint))

    def take(self, batch: DataFrame, number: int) -> None:
        began_s = time.monotonic()
        with failing(self.table):
            if self._kind == "parquet":
                files = self._rename(batch, number)
            elif self._committed(batch.sparkSession) >= number:
                self.result.known += 1
                return
            else:
                files = delta_files.write(batch, self.table, PARTITIONED_BY, _MEASURED)
                if files:
                    self._commit(batch, files, number)
        records = sum(file.records for file in files)
        self.result.batches += 1
        self.result.records += records
        self.result.files += len(files)
        self._progress(f"batch {number}: {records} records in {time.monotonic() - began_s:.1f} s")
        if self._kind == "delta" and number % COMPACTED_EVERY == COMPACTED_EVERY - 1:
            with failing(self.table):
                self._compact()

    def _rename(self, batch: DataFrame, number: int) -> list[WrittenFile]:
        """The batch as a folder, anew if it is there. What a task has left that was repeated goes before it is seen."""
        data = Path(self.table) / tables.DATA
        unfinished = data / f"_unfinished-{uuid4()}"
        unfinished.mkdir(parents=True)
        files = delta_files.write(batch, str(unfinished), PARTITIONED_BY, _MEASURED)
        for path in set(unfinished.rglob("*.parquet")) - {unfinished / file.path for file in files}:
            path.unlink()
        (unfinished / tables.SUCCESS).touch()
        done = data / f"batch={number:012d}"
        shutil.rmtree(done, ignore_errors=True)
        os.rename(unfinished, done)
        return files

    def _delta(self) -> Any:
        """The table as it is now, or None. Its log is read once, and what was added since."""
        from deltalake import DeltaTable

        if self._opened is None and DeltaTable.is_deltatable(self.table):
            self._opened = DeltaTable(self.table)
        elif self._opened is not None:
            self._opened.update_incremental()
        return self._opened

    def _committed(self, spark: SparkSession) -> int:
        """The last batch of this query that the table has; -1: none."""
        delta = self._delta()
        version = None if delta is None else delta.transaction_version(self._query_id(spark))
        return -1 if version is None else int(version)

    def _commit(self, batch: DataFrame, files: Sequence[WrittenFile], number: int) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction
        from pyspark.sql.pandas.types import to_arrow_schema

        query = self._query_id(batch.sparkSession)
        if query is None:
            raise TableUnfit(f"{self.checkpoint} is no checkpoint: it has no metadata")
        schema = to_arrow_schema(batch.schema, timezone="UTC")
        by = list(PARTITIONED_BY)
        if self._opened is None:
            self._opened = DeltaTable.create(
                self.table, schema, mode="ignore", partition_by=by, configuration=_LOG_KEPT
            )
        now_ms = time.time_ns() // 1_000_000
        once = CommitProperties(app_transactions=[Transaction(query, number)])
        self._delta().create_write_transaction(
            [file.added(now_ms) for file in files], "append", schema, partition_by=by, commit_properties=once
        )

    def _compact(self) -> None:
        """Small files of a partition become one, in a commit of its own. Killed before it, the table has the old ones.

        Those that it replaces stay for an hour, for those who read them; so does what a killed batch has left.
        """
        delta = self._delta()
        found = delta.optimize.compact(target_size=_SMALL_BYTES)
        if found["numFilesRemoved"]:
            self._progress(f"{found['numFilesRemoved']} small files are {found['numFilesAdded']} now")
        delta.vacuum(retention_hours=_KEPT_HOURS, enforce_retention_duration=False, dry_run=False, full=True)

    def _query_id(self, spark: SparkSession) -> str | None:
        """Spark's, which a query keeps for as long as its checkpoint; None without one. `TableUnfit`."""
        if self._query is None:
            try:
                lines = [row.value for row in spark.read.text(f"{self.checkpoint}/metadata").collect()]
                self._query = str(json.loads("".join(lines))["id"])
            except PySparkException as error:
                if error.getCondition() == "PATH_NOT_FOUND":
                    return None
                raise TableUnfit(tables.no_checkpoint(self.checkpoint, str(error))) from error
            except Exception as error:  # of Java, which has no file system of that name, or no checkpoint's text
                raise TableUnfit(tables.no_checkpoint(self.checkpoint, str(error))) from error
        return self._query


def read_table(spark: SparkSession, table: str | Path) -> DataFrame:
    """The records of a table: of a Delta log's files if there is one, else of whole batches in the folder.

    Spark reads those of this machine itself: by tasks it takes half as much CPU again.
    """
    found = tables.records_of(table)
    schema = tables.schema_of(table, found)
    if is_stored(table):
        return delta_files.read(spark, found, schema, usual_tasks(spark))
    root = path_of(table).absolute()
    inside = f"{root / tables.DATA}/"
    batches = [path for path, _, _ in found if path.startswith(inside)]
    others = [path for path, _, _ in found if not path.startswith(inside)]
    # With a schema, for Spark takes a topic of digits for a number.
    reader = spark.read.schema(from_arrow_schema(schema))
    frames = [
        reader.option("basePath", str(base)).parquet(*paths).select(*schema.names)
        for base, paths in ((root / tables.DATA, batches), (root, others))
        if paths
    ]
    return reduce(DataFrame.unionByName, frames)


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
