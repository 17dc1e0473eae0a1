"""Applications that read, process and write exactly once: processes beside a cluster whose coordinators are killed.

Owns how such an application is run, what a reader of committed records finds, and which broker coordinates it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tanist.runtime.client.client import Client
from tanist.runtime.client.transactions import list_transactions
from tests.interop.cluster import Cluster, wait_in_sync
from tests.interop.waiting import wait_for

SETTLE_S = 180.0
SHOWN = 8000  # characters of a log


@contextmanager
def application(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[Any]:
    """The command as a process, which is killed if it still runs in the end."""
    with log.open("ab") as output:
        # Some end when their input does.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(30)


def coordinator(cluster: Cluster, prefix: str) -> int:
    """The broker that coordinates the first transactional id that begins so."""
    with Client([cluster.address(node_id) for node_id in cluster.node_ids]) as client:
        found = [each for each in list_transactions(client) if each.transactional_id.startswith(prefix)]
    assert found, f"no transactional id begins with {prefix}"
    return found[0].coordinator


@contextmanager
def without(cluster: Cluster, node_id: int, *topics: str) -> Iterator[None]:
    """Meanwhile the broker is killed; at the end it is back and in sync."""
    cluster.kill_node(node_id)
    try:
        yield
    finally:
        cluster.start_node(node_id)
        for topic in topics:
            wait_in_sync(cluster, topic)


def produce(cluster: Cluster, topic: str, values: Sequence[str], *, partitions: int) -> None:
    """In turn to each partition."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value.encode(), partition=number % partitions)
    assert producer.flush(60) == 0


@dataclass(slots=True)
class Committed:
    """A reader of all committed records of a topic, from the beginning."""

    cluster: Cluster
    topic: str
    partitions: int
    messages: list[Any] = field(default_factory=list)
    _consumer: Any = None

    def __enter__(self) -> Committed:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        self._consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "committed",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        places = [TopicPartition(self.topic, index, OFFSET_BEGINNING) for index in range(self.partitions)]
        self._consumer.assign(places)
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def wait_for(self, count: int, why: Callable[[], str] = lambda: "") -> None:
        """Wait until at least so many are there; the end of `why` is shown if they never are."""

        def enough() -> bool:
            self._poll()
            return len(self.messages) >= count

        try:
            wait_for(enough, f"{count} committed records in {self.topic}", timeout_s=SETTLE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; there are {len(self.messages)}\n{why()[-SHOWN:]}") from error

    def wait_for_the_end(self) -> None:
        """Read on until no partition has more, and none has an open transaction."""
        from confluent_kafka import TopicPartition

        deadline = time.monotonic() + SETTLE_S
        for index in range(self.partitions):
            place = TopicPartition(self.topic, index)
            while True:
                assert time.monotonic() < deadline, f"{place} has no end"
                self._poll()
                (position,) = self._consumer.position([place])
                if position.offset >= self._end(index):
                    break

    def _end(self, partition: int) -> int:
        """The log end offset: behind markers, and behind what is open yet."""
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import AdminClient, OffsetSpec

        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})
        place = TopicPartition(self.topic, partition)
        asked = admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        return int(asked[place].result(30).offset)

    def _poll(self) -> None:
        for message in self._consumer.consume(1000, timeout=0.5):
            if message.error() is None:
                self.messages.append(message)
