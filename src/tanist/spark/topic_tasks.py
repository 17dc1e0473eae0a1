"""What one task of a query over topics does: the range of offsets that it was given, from its leader.

The same for batches and for streams. What decodes is imported where it runs: planning needs neither numpy nor Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import InputPartition

from tanist.runtime.client import Client
from tanist.spark.topic_options import TopicOptions
from tanist.spark.topic_plan import OffsetRange


@dataclass
class Task(InputPartition):
    """What one task reads; None: there is nothing."""

    wanted: OffsetRange | None


def read_task(partition: InputPartition, options: TopicOptions, columns: Sequence[str]) -> Iterator[Any]:
    if not isinstance(partition, Task):
        raise TypeError(f"{type(partition).__name__} is no range of offsets")
    if partition.wanted is None:
        return
    from tanist.spark.topic_reading import read_range

    how = options.connecting
    with Client(how.bootstrap, client_id=how.client_id, timeout_s=how.timeout_s) as client:
        yield from read_range(
            client,
            partition.wanted,
            columns,
            fetch_bytes=options.fetch_bytes,
            fail_on_data_loss=options.fail_on_data_loss,
            read_committed=options.read_committed,
        )
