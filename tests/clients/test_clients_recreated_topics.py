"""A topic that is deleted and made anew, longer than before, under a member of a KIP-848 group of librdkafka.

The member knows its position by the topic's name. What it reads of the new topic is decided by whether it commits the
old position once more when it gives the old partition up: this is so on tanist and on Apache Kafka (docs/clients.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.clients.test_clients_confluent import TIMEOUT_S, result
from tests.interop.cluster import Cluster
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.long, pytest.mark.usefixtures("libraries")]

OLD, NEW = 10, 15


class Reader:
    """A member that reads on, and keeps what it has read and which ends of partitions it has seen."""

    def __init__(self, cluster: Cluster, topic: str, *, commits: bool) -> None:
        from confluent_kafka import Consumer

        self.read: list[str] = []
        self.ends: list[int] = []
        self.consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": topic,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": commits,
                "auto.commit.interval.ms": 200,
                "enable.partition.eof": True,
                "topic.metadata.refresh.interval.ms": 1_000,
            }
        )
        self.consumer.subscribe([topic])

    def poll(self) -> None:
        from confluent_kafka import KafkaError

        message = self.consumer.poll(0.1)
        if message is None:
            return
        if message.error() is None:
            self.read.append(message.value().decode())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            self.ends.append(message.offset())

    def until(self, condition: Callable[[], bool], what: str) -> None:
        def polled() -> bool:
            self.poll()
            return condition()

        wait_for(polled, what)

    def committed(self, topic: str) -> int:
        from confluent_kafka import TopicPartition

        (place,) = self.consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
        return int(place.offset)


def produce(cluster: Cluster, topic: str, kind: str, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(count):
        producer.produce(topic, f"{kind}-{number}".encode(), partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def made_anew(cluster: Cluster, topic: str, *, commits: bool) -> list[str]:
    """What a member reads of the new topic until it has seen the end of it, and has nothing from before to come."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin: Any = AdminClient({"bootstrap.servers": cluster.bootstrap})
    result(admin.create_topics([NewTopic(topic, 1, 3)]))
    produce(cluster, topic, "old", OLD)
    reader = Reader(cluster, topic, commits=commits)
    reader.until(lambda: len(reader.read) == OLD, "the old records are read")
    if commits:
        reader.until(lambda: reader.committed(topic) == OLD, "the position is committed")
    result(admin.delete_topics([topic]))
    result(admin.create_topics([NewTopic(topic, 1, 3)]))
    produce(cluster, topic, "new", NEW)
    reader.until(lambda: f"new-{NEW - 1}" in reader.read, "the last record is read")
    if not commits:
        reader.until(lambda: {f"new-{number}" for number in range(NEW)} <= set(reader.read), "all are read")
    reader.consumer.close()
    return [value for value in reader.read if value.startswith("new")]


@pytest.mark.parametrize("attempt", range(10))
def test_a_member_that_commits_nothing_reads_all_of_it(cluster: Cluster, topic_name: str, attempt: int) -> None:
    made_anew(cluster, topic_name, commits=False)


@pytest.mark.parametrize("attempt", range(10))
def test_a_member_that_commits_by_itself_reads_all_of_it_or_what_is_beyond_its_position(
    cluster: Cluster, topic_name: str, attempt: int
) -> None:
    found = made_anew(cluster, topic_name, commits=True)
    everything = [f"new-{number}" for number in range(NEW)]
    assert found in (everything, everything[OLD:])
