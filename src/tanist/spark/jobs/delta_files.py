"""Parquet files of a table, written and read by Spark's tasks, on this machine or in an object store.

Owns how rows become files of a partition each, under names that no other attempt has, and what a Delta log has to say
of them. A file counts when somebody commits its name; nothing here does. `deltalake` reaches stores for which Spark
needs jars. Must not import pyspark before a job runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from tanist.spark.stores import failing, filesystem, readable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA: Final = "path string, size_bytes bigint, records bigint, partition string, stats string"
"""Of rows about files: `WrittenFile.of`."""
_GROUP_BYTES: Final = 64 << 20
"""Of a row group, as Arrow has it."""
_FILE_BYTES: Final = 1 << 30
"""Likewise of a file."""
_OPEN_MAX: Final = 32
"""Files that a task writes at once; each holds a row group."""
_TASK_BYTES: Final = 128 << 20
_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class WrittenFile:
    path: str
    """Below the table."""
    size_bytes: int
    records: int
    partition: Mapping[str, str]
    stats: str
    """As Delta's log has them, so that readers leave out files by them."""

    @staticmethod
    def of(row: Mapping[str, Any]) -> WrittenFile:
        """Of a row of `SCHEMA`."""
        partition = json.loads(row["partition"])
        return WrittenFile(row["path"], row["size_bytes"], row["records"], partition, row["stats"])

    def added(self, at_ms: int) -> Any:
        from deltalake.transaction import AddAction

        return AddAction(self.path, self.size_bytes, dict(self.partition), at_ms, True, self.stats)


def write(rows: DataFrame, table: str, by: Sequence[str] = (), measured: str | None = None) -> list[WrittenFile]:
    """All rows, in files below `table`, in a folder for each value of the columns `by`.

    The files' statistics have the least and the greatest value of the column `measured`.
    """
    found = rows.mapInArrow(partial(written, table, tuple(by), measured), SCHEMA).collect()
    return [WrittenFile.of(each.asDict()) for each in found]


def read(
    spark: SparkSession, files: Iterable[tuple[str, int, Mapping[str, str]]], schema: Any, tasks: int
) -> DataFrame:
    """The rows of files: each a path or an address, its bytes, its partition. `schema` is Arrow's, of all columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from tanist.spark.jobs.dealt import dealt

    ordered = sorted(files, key=lambda each: each[1], reverse=True)
    total_bytes = sum(size for _, size, _ in ordered)
    count = max(1, min(len(ordered), max(tasks, total_bytes // _TASK_BYTES)))
    shares = [[(path, dict(values)) for path, _, values in ordered[number::count]] for number in range(count)]
    return dealt(spark, shares, partial(_rows, schema), from_arrow_schema(schema))


def _rows(schema: Any, share: Sequence[Any]) -> Iterator[Any]:
    import pyarrow.parquet as pq

    for path, values in share:
        with failing(path), pq.ParquetFile(readable(path)) as file:
            for batch in file.iter_batches(_ROWS):
                yield in_schema(batch, schema, values)


def in_schema(batch: Any, schema: Any, values: Mapping[str, str]) -> Any:
    """An Arrow batch with the columns of a schema: those in `values` are the same in all rows, those it lacks null."""
    import pyarrow as pa

    columns = []
    for name, kind in zip(schema.names, schema.types):
        if name in values:
            columns.append(pa.repeat(pa.scalar(values[name]).cast(kind), batch.num_rows))
        elif name in batch.schema.names:
            columns.append(batch.column(name).cast(kind))
        else:
            columns.append(pa.nulls(batch.num_rows, kind))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def written(table: str, by: tuple[str, ...], measured: str | None, batches: Iterator[Any]) -> Iterator[Any]:
    """What `write` does with the rows of a task, as Arrow batches; gives rows of `SCHEMA`."""
    import pyarrow as pa

    with failing(table):
        open_files: dict[tuple[str, ...], _File] = {}
        done: list[dict[str, Any]] = []
        store = filesystem(table)
        for batch in batches:
            for values, rows in _apart(batch, by):
                file = open_files.pop(values, None)
                if file is None:
                    if len(open_files) == _OPEN_MAX:
                        done.append(open_files.pop(next(iter(open_files))).end())
                    file = _File(store, dict(zip(by, values)), measured)
                file.add(rows)
                if file.is_full:
                    done.append(file.end())
                else:
                    open_files[values] = file
        done += [file.end() for file in open_files.values()]
    if done:
        yield pa.RecordBatch.from_pylist(done)


def _apart(batch: Any, by: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The rows of each partition, without its columns; in the order that they have."""
    import numpy as np

    if not batch.num_rows:
        return
    codes = np.zeros(batch.num_rows, np.int64)
    for name in by:
        column = batch.column(name).dictionary_encode()
        codes = codes * len(column.dictionary) + column.indices.to_numpy()
    kinds, first = np.unique(codes, return_index=True)
    rest = batch.select([name for name in batch.schema.names if name not in by])
    for kind, at in zip(kinds.tolist(), first.tolist()):
        values = tuple(str(batch.column(name)[at].as_py()) for name in by)
        yield values, rest if len(kinds) == 1 else rest.take(np.flatnonzero(codes == kind))


@dataclass(slots=True)
class _File:
    """A file that is being written, row group by row group."""

    store: Any
    partition: dict[str, str]
    measured: str | None
    path: str = ""
    held: list[Any] = field(default_factory=list)
    held_bytes: int = 0
    total_bytes: int = 0
    records: int = 0
    least: int | None = None
    most: int | None = None
    stream: Any = None
    writer: Any = None

    def __post_init__(self) -> None:
        folders = "".join(f"{name}={value}/" for name, value in self.partition.items())
        self.path = f"{folders}part-{uuid4()}.snappy.parquet"

    @property
    def is_full(self) -> bool:
        return self.total_bytes >= _FILE_BYTES

    def add(self, rows: Any) -> None:
        import pyarrow.compute as pc

        self.held.append(rows)
        self.held_bytes += rows.nbytes
        self.records += rows.num_rows
        if self.measured is not None:
            found = pc.min_max(rows.column(self.measured)).as_py()
            self.least = found["min"] if self.least is None else min(self.least, found["min"])
            self.most = found["max"] if self.most is None else max(self.most, found["max"])
        if self.held_bytes >= _GROUP_BYTES:
            self._write()

    def end(self) -> dict[str, Any]:
        """Of `SCHEMA`."""
        if self.held:
            self._write()
        self.writer.close()
        size_bytes = self.stream.tell()
        self.stream.close()
        stats: dict[str, Any] = {"numRecords": self.records}
        if self.measured is not None:
            stats |= {"minValues": {self.measured: self.least}, "maxValues": {self.measured: self.most}}
        return {
            "path": self.path, "size_bytes": size_bytes, "records": self.records,
            "partition": json.dumps(self.partition), "stats": json.dumps(stats),
        }  # fmt: skip

    def _write(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_batches(self.held)
        if self.writer is None:
            self.stream = self.store.open_output_stream(self.path)
            self.writer = pq.ParquetWriter(self.stream, table.schema)
        self.writer.write_table(table, table.num_rows)
        self.total_bytes += self.held_bytes
        self.held, self.held_bytes = [], 0
