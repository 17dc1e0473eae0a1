"""`format("tanist")`: topics of any Kafka-compatible cluster as a DataFrame (docs/spark.md).

Owns the schema, which is that of Spark's own Kafka source. It needs no connector and no JVM client; each task has one
connection to the leader that it reads from. Spark has a process for making a source, one for its plan, and others for
its tasks: each imports what it needs, and this module next to nothing.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

_COLUMNS: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
_HEADERS: Final = {"headers": "array<struct<key: string, value: binary>>"}


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
        columns = dict(_COLUMNS)
        asked = {name.lower(): value for name, value in self.options.items()}.get("includeheaders")
        if asked is not None:
            from tanist.spark.topic.options import boolean

            columns |= _HEADERS if boolean("includeHeaders", asked) else {}
        return ", ".join(f"{name} {kind}" for name, kind in columns.items())

    def reader(self, schema: StructType) -> DataSourceReader:
        from tanist.spark.topic.batch import TopicReader
        from tanist.spark.topic.options import TopicOptions

        return TopicReader(TopicOptions.parse(dict(self.options.items())), _columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (PySpark's name)
        from tanist.spark.topic.options import OptionError, TopicOptions
        from tanist.spark.topic.stream import RefusedStream, TopicStreamReader

        try:
            options = TopicOptions.parse(dict(self.options.items()), streaming=True)
            return TopicStreamReader(options, _columns(schema))
        except OptionError as error:
            return RefusedStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from tanist.spark.sink.options import SinkOptions
        from tanist.spark.sink.sink import TopicWriter

        return TopicWriter(SinkOptions.parse(dict(self.options.items())), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from tanist.spark.sink.options import SinkOptions
        from tanist.spark.sink.sink import TopicStreamWriter

        return TopicStreamWriter(SinkOptions.parse(dict(self.options.items())), schema)


def _columns(schema: StructType) -> list[str]:
    there = _COLUMNS | _HEADERS
    unknown = [name for name in schema.names if name not in there]
    if unknown:
        from tanist.spark.topic.options import OptionError

        raise OptionError(f"a topic has no column {', '.join(unknown)}; it has {', '.join(there)}")
    return list(schema.names)
