"""Stretches of segment files that a job has chosen itself, as one DataFrame.

Owns the way from a job's plan (which bytes, which offsets of them, dealt out to tasks) to tasks that read it. It is not
for users: `tanist-segments` plans for them. A job that reads hundreds of stretches of a few kilobytes would have Spark
plan each of them through a Python process of its own; here all are one relation. A task may also give, instead of rows,
what they come to (`audit.sums`); and instead of a value its hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from tanist.spark.jobs.audit import sums as audit_sums
from tanist.spark.jobs.dealt import dealt

_VALUE_HASH: Final = "value_hash"


class SegmentRange(NamedTuple):
    """Bytes of a file, whose it is, and which offsets of it are wanted (inclusive; None: all)."""

    path: str
    start: int
    end: int
    topic: str
    partition: int
    replica: int | None
    segment: int
    salvage_id: str | None
    least: int | None
    most: int | None


Fields: TypeAlias = Sequence[Any]
"""Those of a range, as they come to a task."""


def read_ranges(spark: SparkSession, shares: Sequence[Sequence[SegmentRange]], schema: str) -> DataFrame:
    """The rows of `tanist-segments` with these columns, of these ranges; also with the column `value_hash`."""
    columns = [each.split()[0] for each in schema.split(",")]
    return dealt(spark, shares, partial(_rows_of_share, columns), schema)


def read_sums(spark: SparkSession, shares: Sequence[Sequence[Sequence[SegmentRange]]], *, values: bool) -> DataFrame:
    """The sums of these ranges: rows of `audit_sums.SCHEMA`, several for a bucket that several ranges share.

    A share has groups of ranges: those of a group are the same stretch of several replicas, and have most batches in
    common.
    """
    return dealt(spark, shares, partial(_sums_of_share, audit_sums.columns(values=values)), audit_sums.SCHEMA)


def _rows_of_share(columns: Sequence[str], share: Sequence[Fields]) -> Iterator[Any]:
    for fields in share:
        each = SegmentRange(*fields)
        for found in _rows(each, columns):
            if each.least is not None and each.most is not None:
                yield _within(found, each.least, each.most)
            else:
                yield found


def _sums_of_share(columns: Sequence[str], share: Sequence[Sequence[Fields]]) -> Iterator[Any]:
    for group in share:
        yield from sums_of_group(columns, [SegmentRange(*fields) for fields in group])


def sums_of_group(columns: Sequence[str], group: Sequence[SegmentRange]) -> Iterator[Any]:
    """What is the same in several replicas is decoded once."""
    if len(group) == 1:
        (each,) = group
        for found in _rows(each, columns):
            yield audit_sums.summed(found, each.topic, each.partition, each.replica)
        return
    from tanist.spark.jobs.audit.known_batches import KnownBatches

    known = KnownBatches()
    for each in group:
        origin = (each.topic, each.partition, each.replica)
        for found in _rows(each, [*columns, "batch_offset"], known.unknown):
            sums = audit_sums.apart(found)
            known.add(sums)
            yield audit_sums.rows_of(audit_sums.in_buckets(sums), audit_sums.damages_in(found), *origin)
        met = known.met()
        if met is not None:
            yield audit_sums.rows_of(met, 0, *origin)
        known.learn()


def _rows(each: SegmentRange, columns: Sequence[str], unknown: Any = None) -> Iterator[Any]:
    """The rows of a range, and perhaps some before and behind those that are wanted."""
    # The decoder is imported where it runs: planning does not need it.
    from tanist.spark.segments.arrow_rows import Origin
    from tanist.spark.segments.reading import Wanted, read_stretch

    # A hash stands for the value, where it stood.
    read = ["value" if name == _VALUE_HASH else name for name in columns]
    origin = Origin(each.topic, each.partition, each.replica, each.segment, each.salvage_id)
    wanted = Wanted(each.least, each.most)
    for found in read_stretch(each.path, each.start, each.end, origin, read, wanted, unknown):
        yield _hashed(found) if _VALUE_HASH in columns else found


def _within(batch: Any, least: int, most: int) -> Any:
    """A batch may reach into several ranges, each of which is read by itself: no row may come twice."""
    import pyarrow.compute as pc

    offset = batch.column("offset")
    return batch.filter(pc.and_(pc.greater_equal(offset, least), pc.less_equal(offset, most)))


def _hashed(batch: Any) -> Any:
    """Values as Spark's `xxhash64` of them."""
    import numpy as np
    import pyarrow as pa

    from tanist.spark.jobs.audit.spark_hashes import of_bytes

    number = batch.schema.get_field_index("value")
    values = batch.column(number)
    _, bounds, data = values.buffers()
    ends = np.frombuffer(bounds, np.int32, len(values) + 1, 4 * values.offset).astype(np.int64)
    lengths = np.where(values.is_null().to_numpy(zero_copy_only=False), -1, np.diff(ends))
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    hashes = pa.array(of_bytes(content, ends[:-1], lengths).view(np.int64))
    return batch.set_column(number, _VALUE_HASH, hashes)
