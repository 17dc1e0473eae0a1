"""A batch's plan: one Spark partition for each range of offsets of the topics that are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from tanist.spark.topic.options import TopicOptions, warn
from tanist.spark.topic.plan import ranges, split
from tanist.spark.topic.tasks import Task, read_task


class TopicReader(DataSourceReader):
    def __init__(self, options: TopicOptions, columns: list[str]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        warn(options.without_effect)
        with options.connecting.client() as client:
            planned = split(ranges(client, options), options.min_partitions, options.max_records_per_partition)
        # A source without partitions is asked to read one that is None.
        return [Task((each,)) for each in planned] or [Task(())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_task(partition, self._options, self._columns)
