"""Histories in an object store, read by Python's workers in ranges: Spark's own readers need a jar for each store.

Owns the shares of tasks: a range of a file of lines, or a row group of a Parquet file. What the lines mean is
`by_spark.history`'s.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from io import BufferedReader
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from tanist.spark.jobs.dealt import dealt
from tanist.spark.jobs.delta_files import in_schema
from tanist.spark.stores import failing, opened, readable

SHARE_BYTES: Final = 32 << 20
_READ_BYTES: Final = 4 << 20
_LINES_MAX: Final = 4096


def lines(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """The lines of these files, as the column `line`."""
    shares = [share for file in files for share in shares_of(file, SHARE_BYTES)]
    return dealt(spark, shares, lines_of, "line string")


def shares_of(path: str, share_bytes: int) -> list[tuple[str, int, int]]:
    """A file as ranges of so many bytes: path, first, end. `StoreFailed`."""
    file = opened(path)
    file.close()
    return [(path, first, min(first + share_bytes, file.size)) for first in range(0, file.size, share_bytes)]


def lines_of(share: tuple[str, int, int]) -> Iterator[Any]:
    """The lines that begin in a range, in batches."""
    import pyarrow as pa

    path, first, end = share
    with failing(path), BufferedReader(readable(path), _READ_BYTES) as file:
        at = first
        if first:  # the line before ends in this range, or with its first byte
            file.seek(first - 1)
            at += len(file.readline()) - 1
        batch: list[str] = []
        while at < end and (line := file.readline()):
            at += len(line)
            batch.append(line.decode(errors="replace"))
            if len(batch) == _LINES_MAX:
                yield pa.record_batch({"line": pa.array(batch, pa.string())})
                batch = []
        yield pa.record_batch({"line": pa.array(batch, pa.string())})


def rows(spark: SparkSession, files: Sequence[str], names: Collection[str]) -> DataFrame:
    """Of the columns with these names those that any of the Parquet files has."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile
    from pyspark.sql.pandas.types import from_arrow_schema

    shares, schemas = [], []
    for path in files:
        with failing(path), ParquetFile(readable(path)) as file:
            schemas.append(file.schema_arrow)
            shares += [(path, group) for group in range(file.num_row_groups)]
    whole = pa.unify_schemas(schemas, promote_options="permissive")
    # A column of nulls alone is a column that is not there.
    schema = pa.schema([each for each in whole if each.name in names and not pa.types.is_null(each.type)])
    return dealt(spark, shares, partial(_rows_of, schema), from_arrow_schema(schema))


def _rows_of(schema: Any, share: tuple[str, int]) -> Iterator[Any]:
    from pyarrow.parquet import ParquetFile

    path, group = share
    with failing(path), ParquetFile(readable(path)) as file:
        there = [name for name in schema.names if name in file.schema_arrow.names]
        for batch in file.iter_batches(row_groups=[group], columns=there):
            yield in_schema(batch, schema, {})
