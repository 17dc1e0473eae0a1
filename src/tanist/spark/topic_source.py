"""`format("tanist")`: topics of any Kafka-compatible cluster as a DataFrame (docs/spark.md).

Owns the schema, which is that of Spark's own Kafka source, and the plan: one Spark partition for each range of offsets.
It needs no connector and no JVM client; each task has one connection to the leader that it reads from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tanist.runtime.client import Client
from tanist.spark.topic_options import OptionError, TopicOptions
from tanist.spark.topic_plan import OffsetRange, ranges, split

_DDL = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
_HEADERS_DDL = ", headers array<struct<key: string, value: binary>>"


@dataclass
class Task(InputPartition):
    """What one task reads; None: there is nothing."""

    wanted: OffsetRange | None


class TopicDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tanist"

    def schema(self) -> str:
        include = TopicOptions.parse(dict(self.options.items())).include_headers
        return _DDL + _HEADERS_DDL if include else _DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        return TopicReader(TopicOptions.parse(dict(self.options.items())), schema)


class TopicReader(DataSourceReader):
    def __init__(self, options: TopicOptions, schema: StructType) -> None:
        self._options = options
        self._columns = list(schema.names)
        from tanist.spark.topic_reading import TYPES

        unknown = [name for name in self._columns if name not in TYPES]
        if unknown:
            raise OptionError(f"a topic has no column {', '.join(unknown)}; it has {', '.join(TYPES)}")

    def partitions(self) -> Sequence[InputPartition]:
        with self._client() as client:
            planned = split(ranges(client, self._options), self._options.min_partitions)
        # A source without partitions is asked to read one that is None.
        return [Task(each) for each in planned] or [Task(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Task):
            raise TypeError(f"{type(partition).__name__} is no range of offsets")
        if partition.wanted is None:
            return
        from tanist.spark.topic_reading import read_range

        options = self._options
        with self._client() as client:
            yield from read_range(
                client,
                partition.wanted,
                self._columns,
                fetch_bytes=options.fetch_bytes,
                fail_on_data_loss=options.fail_on_data_loss,
                read_committed=options.read_committed,
            )

    def _client(self) -> Client:
        options = self._options
        return Client(options.bootstrap, client_id=options.client_id, timeout_s=options.timeout_s)
