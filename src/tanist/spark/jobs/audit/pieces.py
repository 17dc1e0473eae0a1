"""Stretches of segment files that a job has chosen itself, as one DataFrame.

Owns the way from a job's plan (which bytes, which offsets of them, dealt out to tasks) to tasks that read it. It is not
for users: `tanist-segments` plans for them. A job that reads hundreds of stretches of a few kilobytes would have Spark
plan each of them through a Python process of its own; here all are one relation. A task may also give, instead of rows,
what they come to (`audit.sums`); and instead of a value its hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tanist.spark.jobs.audit import sums as audit_sums

_NAME: Final = "tanist-pieces"
_VALUE_HASH: Final = "value_hash"


class Piece(NamedTuple):
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


@dataclass
class Share(InputPartition):
    """The pieces that one task reads."""

    pieces: list[Piece]


@dataclass
class Groups(InputPartition):
    """The groups of pieces that one task sums up."""

    groups: list[list[Piece]]


def read_pieces(spark: SparkSession, shares: Sequence[Sequence[Piece]], schema: str) -> DataFrame:
    """The rows of `tanist-segments` with these columns, of these pieces; also with the column `value_hash`."""
    spark.dataSource.register(PiecesDataSource)
    return spark.read.format(_NAME).schema(schema).option("shares", json.dumps(shares)).load()


def read_sums(spark: SparkSession, shares: Sequence[Sequence[Sequence[Piece]]], *, values: bool) -> DataFrame:
    """The sums of these pieces: rows of `audit_sums.SCHEMA`, several for a bucket that several pieces share.

    A share has groups of pieces: those of a group are the same stretch of several replicas, and have most batches in
    common.
    """
    spark.dataSource.register(PiecesDataSource)
    source = spark.read.format(_NAME).schema(audit_sums.SCHEMA).option("shares", json.dumps(shares))
    return source.option("sums", "values" if values else "records").load()


class PiecesDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return _NAME

    def reader(self, schema: StructType) -> DataSourceReader:
        shares = json.loads(self.options["shares"])
        sums = self.options.get("sums")
        if sums is not None:
            groups = [[[Piece(*piece) for piece in group] for group in share] for share in shares]
            return SumsReader(groups, audit_sums.columns(values=sums == "values"))
        return PiecesReader([[Piece(*piece) for piece in share] for share in shares], list(schema.names))


class PiecesReader(DataSourceReader):
    def __init__(self, shares: list[list[Piece]], columns: list[str]) -> None:
        self._shares = shares
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        return [Share(share) for share in self._shares if share] or [Share([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Share):
            raise TypeError(f"{type(partition).__name__} is no share of a plan")
        for piece in partition.pieces:
            for found in _rows(piece, self._columns):
                if piece.least is not None and piece.most is not None:
                    yield _within(found, piece.least, piece.most)
                else:
                    yield found


class SumsReader(DataSourceReader):
    def __init__(self, shares: list[list[list[Piece]]], columns: list[str]) -> None:
        self._shares = shares
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        return [Groups(share) for share in self._shares if share] or [Groups([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Groups):
            raise TypeError(f"{type(partition).__name__} is no share of a plan")
        for group in partition.groups:
            yield from self._of_group(group) if len(group) > 1 else self._of_piece(group[0])

    def _of_piece(self, piece: Piece) -> Iterator[Any]:
        for found in _rows(piece, self._columns):
            yield audit_sums.summed(found, piece.topic, piece.partition, piece.replica)

    def _of_group(self, group: list[Piece]) -> Iterator[Any]:
        """What is the same in several replicas is decoded once."""
        from tanist.spark.jobs.audit.known_batches import KnownBatches

        known = KnownBatches()
        columns = [*self._columns, "batch_offset"]
        for piece in group:
            origin = (piece.topic, piece.partition, piece.replica)
            for found in _rows(piece, columns, known.unknown):
                sums = audit_sums.apart(found)
                known.add(sums)
                yield audit_sums.rows_of(audit_sums.in_buckets(sums), audit_sums.damages_in(found), *origin)
            met = known.met()
            if met is not None:
                yield audit_sums.rows_of(met, 0, *origin)
            known.learn()


def _rows(piece: Piece, columns: Sequence[str], unknown: Any = None) -> Iterator[Any]:
    """The rows of a piece, and perhaps some before and behind those that are wanted."""
    # The decoder is imported where it runs: planning needs neither numpy nor Arrow.
    from tanist.spark.segments.arrow_rows import Origin
    from tanist.spark.segments.reading import Wanted, read_stretch

    # A hash stands for the value, where it stood.
    read = ["value" if name == _VALUE_HASH else name for name in columns]
    origin = Origin(piece.topic, piece.partition, piece.replica, piece.segment, piece.salvage_id)
    wanted = Wanted(piece.least, piece.most)
    for found in read_stretch(piece.path, piece.start, piece.end, origin, read, wanted, unknown):
        yield _hashed(found) if _VALUE_HASH in columns else found


def _within(batch: Any, least: int, most: int) -> Any:
    """A batch may reach into several pieces, each of which is read by itself: no row may come twice."""
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
