"""Stretches of segment files that a job has chosen itself, as one DataFrame.

Owns the way from a job's plan (which bytes, which offsets of them, dealt out to tasks) to tasks that read it. It is not
for users: `tanist-segments` plans for them. A job that reads hundreds of stretches of a few kilobytes would have Spark
plan each of them through a Python process of its own; here all are one relation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

_NAME: Final = "tanist-pieces"


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
    """What one task reads."""

    pieces: list[Piece]


def read_pieces(spark: SparkSession, shares: Sequence[Sequence[Piece]], schema: str) -> DataFrame:
    """The rows of `tanist-segments` with these columns, of these pieces."""
    spark.dataSource.register(PiecesDataSource)
    return spark.read.format(_NAME).schema(schema).option("shares", json.dumps(shares)).load()


class PiecesDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return _NAME

    def reader(self, schema: StructType) -> DataSourceReader:
        shares = [[Piece(*piece) for piece in share] for share in json.loads(self.options["shares"])]
        return PiecesReader(shares, list(schema.names))


class PiecesReader(DataSourceReader):
    def __init__(self, shares: list[list[Piece]], columns: list[str]) -> None:
        self._shares = shares
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        return [Share(share) for share in self._shares if share] or [Share([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Share):
            raise TypeError(f"{type(partition).__name__} is no share of a plan")
        # What decodes is imported where it runs: planning needs neither numpy nor Arrow.
        from tanist.spark.arrow_rows import Origin
        from tanist.spark.segment_reading import Wanted, read_stretch

        for piece in partition.pieces:
            origin = Origin(piece.topic, piece.partition, piece.replica, piece.segment, piece.salvage_id)
            wanted = Wanted(piece.least, piece.most)
            for found in read_stretch(piece.path, piece.start, piece.end, origin, self._columns, wanted):
                yield found if piece.least is None or piece.most is None else _within(found, piece.least, piece.most)


def _within(batch: Any, least: int, most: int) -> Any:
    """A batch may reach into several pieces, each of which is read by itself: no row may come twice."""
    import pyarrow.compute as pc

    offset = batch.column("offset")
    return batch.filter(pc.and_(pc.greater_equal(offset, least), pc.less_equal(offset, most)))
