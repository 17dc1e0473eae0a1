"""One task of a query over topics: it reads the range of offsets that it was given, from its leader.

The same for batches and for streams. The decoder is imported where it runs: planning needs neither numpy nor Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import InputPartition

from tanist.runtime.client.client import Client
from tanist.spark.topic.options import Connecting, TopicOptions
from tanist.spark.topic.plan import OffsetRange


@dataclass
class Task(InputPartition):
    """The ranges that one task reads, one after another."""

    ranges: tuple[OffsetRange, ...]


def read_task(partition: InputPartition, options: TopicOptions, columns: Sequence[str]) -> Iterator[Any]:
    if not isinstance(partition, Task):
        raise TypeError(f"{type(partition).__name__} is no range of offsets")
    if not partition.ranges:
        return
    from tanist.spark.topic.reading import read_range

    for wanted in partition.ranges:
        yield from read_range(
            _client(options.connecting),
            wanted,
            columns,
            fetch_bytes=options.fetch_bytes,
            fail_on_data_loss=options.fail_on_data_loss,
            read_committed=options.read_committed,
        )


def _client(how: Connecting) -> Client:
    """A worker does one task after another, a stream's every few hundred milliseconds: it stays connected, and knows
    who leads what. A client makes a connection that has broken anew, and asks again when it was wrong.
    """
    client = _clients.get(how)
    if client is None:
        for other in _clients.values():
            other.close()
        _clients.clear()
        client = _clients[how] = how.client()
    return client


_clients: dict[Connecting, Client] = {}
"""Of this process: one at most."""
