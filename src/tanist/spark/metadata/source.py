"""`format("tanist-metadata")`: the metadata log as a table of changes (docs/spark.md).

Owns the schema. Options and the plan are `metadata.planning`'s, which Spark asks for in another process.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

DDL: Final = (
    "replica int, offset bigint, epoch int, timestamp timestamp, snapshot boolean, record string, topic string,"
    " topic_id string, partition int, leader int, leader_epoch int, partition_epoch int, isr array<int>,"
    " elr array<int>, last_known_elr array<int>, leader_recovery_state string, last_unclean_epoch int,"
    " replicas array<int>, adding_replicas array<int>, removing_replicas array<int>, broker int, broker_epoch bigint,"
    " fenced boolean, in_controlled_shutdown boolean, resource_type string, resource string, name string,"
    " value string, fields string, damage string"
)


class MetadataDataSource(DataSource):
    """The metadata log as a table of changes: `format("tanist-metadata")`, for batches. Asks no broker.

    `load(PATH)`: the data folder of a cluster or of a node. A row is a record, with the whole state after it. Option:
    `replica` (whose log; or all).

        >>> from tanist.spark import session
        >>> changes = session().read.format("tanist-metadata").load("tanist-data")
        >>> changes.filter("topic = 'orders'").select("offset", "timestamp", "partition", "leader", "isr", "elr").show()
    """

    @classmethod
    def name(cls) -> str:
        return "tanist-metadata"

    def schema(self) -> str:
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        from tanist.spark.metadata.planning import MetadataReader

        return MetadataReader(dict(self.options.items()), schema)
