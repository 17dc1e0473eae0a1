"""`format("tanist")`: topics of any Kafka-compatible cluster as a DataFrame (docs/spark.md).

Owns the schema, which is that of Spark's own Kafka source, and a batch's plan: one Spark partition for each range of
offsets. It needs no connector and no JVM client; each task has one connection to the leader that it reads from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from tanist.runtime.client.client import Client
from tanist.spark.sink.options import SinkOptions
from tanist.spark.topic.options import OptionError, TopicOptions, boolean, warn
from tanist.spark.topic.plan import ranges, split
from tanist.spark.topic.tasks import Task, read_task

_DDL = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
_HEADERS_DDL = ", headers array<struct<key: string, value: binary>>"


class TopicDataSource(DataSource):
    """Topics of a Kafka-compatible cluster: `format("tanist")`, for batches and streams, to read and to write.

    Columns: key and value (binary), topic, partition, offset, timestamp, timestampType; by `includeHeaders` headers.
    Options are those of Spark's own Kafka source; docs/spark.md says what differs.

    Reading: `kafka.bootstrap.servers`; one of `subscribe` (names), `subscribePattern` (a Java regular expression) and
    `assign` (JSON); `startingOffsets`, `endingOffsets` (earliest, latest, JSON), `startingTimestamp`,
    `endingTimestamp`, `startingOffsetsByTimestamp`, `endingOffsetsByTimestamp`, `startingOffsetsByTimestampStrategy`,
    `failOnDataLoss`, `includeHeaders`, `minPartitions`, `maxRecordsPerPartition`, `kafka.isolation.level`; of a
    stream `maxOffsetsPerTrigger`, `minOffsetsPerTrigger`, `maxTriggerDelay`.

    Writing: `kafka.bootstrap.servers`, `topic` (else a column), `kafka.compression.type`, `kafka.batch.size`; of a
    stream `exactlyOnce` (true, false, transaction). Columns: value, and if there are key, topic, partition, headers.

        >>> from tanist.spark import session
        >>> place = {"kafka.bootstrap.servers": "localhost:9092"}
        >>> orders = session().read.format("tanist").options(**place, subscribe="orders").load()
        >>> orders.selectExpr("cast(key as string)", "cast(value as string)").show()
        >>> orders.select("key", "value").write.format("tanist").options(**place, topic="copy").mode("append").save()

        >>> stream = session().readStream.format("tanist").options(**place, subscribe="orders").load()
        >>> sink = stream.select("key", "value").writeStream.format("tanist").options(**place, topic="copy")
        >>> sink.option("checkpointLocation", "/data/checkpoint").start()
    """

    @classmethod
    def name(cls) -> str:
        return "tanist"

    def schema(self) -> str:
        # Spark asks before it says whether the query is a stream.
        named = {name.lower(): value for name, value in self.options.items()}
        return _DDL + _HEADERS_DDL if boolean("includeHeaders", named.get("includeheaders", "false")) else _DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        return TopicReader(TopicOptions.parse(dict(self.options.items())), _columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (PySpark's name)
        from tanist.spark.topic.stream import TopicStreamReader

        return TopicStreamReader(TopicOptions.parse(dict(self.options.items()), streaming=True), _columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from tanist.spark.sink.sink import TopicWriter

        return TopicWriter(SinkOptions.parse(dict(self.options.items())), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from tanist.spark.sink.sink import TopicStreamWriter

        return TopicStreamWriter(SinkOptions.parse(dict(self.options.items())), schema)


class TopicReader(DataSourceReader):
    def __init__(self, options: TopicOptions, columns: list[str]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        how = options.connecting
        warn(options.without_effect)
        with Client(how.bootstrap, client_id=how.client_id, timeout_s=how.timeout_s) as client:
            planned = split(ranges(client, options), options.min_partitions, options.max_records_per_partition)
        # A source without partitions is asked to read one that is None.
        return [Task((each,)) for each in planned] or [Task(())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_task(partition, self._options, self._columns)


def _columns(schema: StructType) -> list[str]:
    from tanist.spark.topic.reading import TYPES

    unknown = [name for name in schema.names if name not in TYPES]
    if unknown:
        raise OptionError(f"a topic has no column {', '.join(unknown)}; it has {', '.join(TYPES)}")
    return list(schema.names)
