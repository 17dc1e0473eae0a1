"""Histories in Parquet files that tasks read themselves, a pass at a time, without the JVM.

Owns which files can be read so, how their row groups are dealt out to tasks, and the two passes: one that looks at
every event (`first_pass`), and one that picks events by their values. A pass over a DataFrame takes longer: each row
goes from Parquet through the JVM to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from tanist.spark.jobs.dealt import dealt, usual_tasks

_ROWS: Final = 1 << 16
"""Of a batch: numpy's intermediate arrays are of half a MB."""
_BUFFER_BYTES: Final = 1 << 20
_SHARE_BYTES: Final = 256 << 20
_BITS_MIN: Final = 20
_BITS_EACH: Final = 64
PICKED_MAX: Final = 1 << 20
"""With more values than these the whole history is looked at by Spark."""


class RowGroups(NamedTuple):
    """Row groups [first, end) of a file."""

    path: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class ParquetLines:
    """Lines of one operation each, and of no transactions."""

    files: tuple[tuple[str, tuple[int, ...]], ...]
    """With the bytes of each row group."""
    topics: frozenset[str] | None = None

    def of_topics(self, topics: Iterable[str]) -> ParquetLines:
        return replace(self, topics=frozenset(topics))

    def events(self, spark: SparkSession, function: Callable[[Iterator[Any]], Iterator[Any]], schema: str) -> DataFrame:
        """What `function` makes of the events (`events.Events`) of each task's share."""
        return self._mapped(spark, partial(_numbers, function, self.topics), schema)

    def picked(self, spark: SparkSession, wanted: HashFilter) -> DataFrame:
        """The events that pass the filter, with the columns of `History.events`."""
        from tanist.spark.jobs.audit.events import ROW_SCHEMA

        return self._mapped(spark, partial(_rows, wanted, self.topics), ROW_SCHEMA)

    def _mapped(self, spark: SparkSession, read: Callable[[Any], Iterator[Any]], schema: str) -> DataFrame:
        return dealt(spark, self._shares(usual_tasks(spark)), partial(_read, read), schema)

    def _shares(self, least: int) -> list[list[RowGroups]]:
        """Row groups in their order: what lies behind each other was mostly written behind each other."""
        total = sum(sum(sizes) for _, sizes in self.files)
        enough = min(_SHARE_BYTES, max(1, total // least))
        shares: list[list[RowGroups]] = [[]]
        filled = 0
        for path, sizes in self.files:
            for number, size in enumerate(sizes):
                if filled >= enough:
                    shares.append([])
                    filled = 0
                last = shares[-1][-1] if shares[-1] else None
                if last is not None and last.path == path:
                    shares[-1][-1] = last._replace(end=number + 1)
                else:
                    shares[-1].append(RowGroups(path, number, number + 1))
                filled += size
        return shares


def parquet_lines(paths: Sequence[Path]) -> ParquetLines | None:
    """None if Spark has to read them: folders within folders, columns of other types, files that differ in columns."""
    import pyarrow.parquet as pq

    from tanist.spark.jobs.audit.events import readable

    files = []
    for path in paths:
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        seen = [each for each in inside if not each.name.startswith((".", "_"))]
        if not all(each.is_file() for each in seen):
            return None
        files += seen
    found = []
    names: set[frozenset[str]] = set()
    for path in files:
        with pq.ParquetFile(path) as file:
            names.add(frozenset(file.schema_arrow.names))
            if len(names) > 1 or not readable(file.schema_arrow):
                return None
            metadata = file.metadata
            groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
            # Where a worker runs, another folder may be the current one.
            found.append((str(path.absolute()), tuple(group.total_byte_size for group in groups)))
    return ParquetLines(tuple(found))


@dataclass(frozen=True, slots=True)
class HashFilter:
    """Lets hashes through: all that are wanted, and a few others."""

    bits: Any
    """A flag for each number that the lowest bits of a hash may be."""

    @staticmethod
    def of(hashes: Any) -> HashFilter:
        count = max(1, len(hashes)) * _BITS_EACH
        bits = np.zeros(1 << max(_BITS_MIN, count.bit_length()), bool)
        bits[hashes & (len(bits) - 1)] = True
        return HashFilter(np.packbits(bits, bitorder="little"))

    def passes(self, hashes: Any) -> Any:
        numbers = hashes & (8 * len(self.bits) - 1)
        return (self.bits[numbers >> 3] >> (numbers & 7).astype(np.uint8) & 1).view(bool)


def hash_filter(values: DataFrame) -> HashFilter | None:
    """Of the column `hash`; None if that are too many."""
    found = values.select("hash").limit(PICKED_MAX + 1).toArrow().column("hash").to_numpy()
    return HashFilter.of(found) if len(found) <= PICKED_MAX else None


def _read(read: Callable[[Any], Iterator[Any]], share: Sequence[Sequence[Any]]) -> Iterator[Any]:
    yield from read(_batches([RowGroups(*fields) for fields in share]))


def _batches(share: list[RowGroups]) -> Iterator[Any]:
    """The lines of these row groups: a page of each column at a time, not a row group."""
    import pyarrow.parquet as pq

    from tanist.spark.jobs.audit.events import CODED, LINE

    for path, first, end in share:
        metadata = pq.read_metadata(path)
        kinds = {field.name: str(field.type) for field in metadata.schema.to_arrow_schema()}
        coded = [name for name in CODED if kinds.get(name) == "string"]
        columns = [name for name in LINE if name in kinds]
        with pq.ParquetFile(
            path, metadata=metadata, read_dictionary=coded, pre_buffer=False, buffer_size=_BUFFER_BYTES
        ) as file:
            yield from file.iter_batches(_ROWS, range(first, end), columns, use_threads=False)


def _numbers(
    function: Callable[[Iterator[Any]], Iterator[Any]], topics: frozenset[str] | None, batches: Iterator[Any]
) -> Iterator[Any]:
    from tanist.spark.jobs.audit.events import Lines

    yield from function(Lines(batch, topics).numbers() for batch in batches)


def _rows(wanted: HashFilter, topics: frozenset[str] | None, batches: Iterator[Any]) -> Iterator[Any]:
    from tanist.spark.jobs.audit.events import Lines

    for batch in batches:
        lines = Lines(batch, topics)
        which = wanted.passes(lines.hashes)
        if which.any():
            yield lines.rows(which)
