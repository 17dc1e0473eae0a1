"""`format("tanist-segments")`: replicas' segment files as a DataFrame, read where they lie (docs/spark.md).

Owns the schema. Options, filters and the plan are `segments.planning`'s, which Spark asks for in another process.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

DDL: Final = (
    "topic string, partition int, replica int, leader_epoch int, offset bigint, timestamp timestamp, key binary,"
    " value binary, headers array<struct<key: string, value: binary>>, producer_id bigint, producer_epoch int,"
    " sequence int, is_control boolean, is_transactional boolean, crc_ok boolean, fingerprint bigint,"
    " batch_offset bigint, batch_position bigint, segment bigint, salvage_id string, damage string"
)


class SegmentsDataSource(DataSource):
    """Replicas' segment files, where they lie: `format("tanist-segments")`, for batches. Asks no broker.

    `load(PATH)`: the data folder of a cluster or of a node, a log directory, a partition, or the salvage. A damaged
    batch is a row: `damage` says what is wrong. Options: `contents` (log, salvage, all), `replica`, `includeMetadata`,
    `stretchBytes`, `indexes`. Name the columns that you need by `.schema(...)`: the others cost nothing then.

        >>> from tanist.spark import session
        >>> log = session().read.format("tanist-segments").load("tanist-data")
        >>> log.filter("damage is not null").show()
        >>> slim = "replica int, partition int, offset bigint, fingerprint bigint"
        >>> session().read.format("tanist-segments").schema(slim).load("tanist-data").groupBy("replica").count().show()
    """

    @classmethod
    def name(cls) -> str:
        return "tanist-segments"

    def schema(self) -> str:
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        from tanist.spark.segments.planning import SegmentsReader

        return SegmentsReader(dict(self.options.items()), schema)
