"""Apache Kafka's tools for groups: kafka-consumer-groups, and kafka-dump-log on the log that groups are in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tanist.wire.internal_topics import OFFSETS_TOPIC, partition_of
from tests.clients.topics import create_topics
from tests.interop import apache
from tests.interop.cluster import Cluster
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.interop, pytest.mark.usefixtures("java", "libraries")]

CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PARTITIONS = 50


@pytest.fixture(scope="module")
def consumed(cluster: Cluster) -> tuple[str, str]:
    """A group that has read 8 of 10 records of a topic, and its topic."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    group, topic = "tools-group", "tools-topic"
    create_topics(cluster, topic, partitions=1)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for _ in range(10):
        producer.produce(topic, b"value")
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([topic])
    wait_for(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "the group is settled")
    consumer.commit(offsets=[TopicPartition(topic, 0, 8, "noted")], asynchronous=False)
    consumer.close()
    return group, topic


def groups(cluster: Cluster, *arguments: str) -> str:
    return apache.tool(CONSUMER_GROUPS, "--bootstrap-server", cluster.bootstrap, *arguments).stdout


def test_kafka_consumer_groups_lists_describes_resets_and_deletes(cluster: Cluster, consumed: tuple[str, str]) -> None:
    group, topic = consumed
    assert group in groups(cluster, "--list").split()
    row = next(line for line in groups(cluster, "--describe", "--group", group).splitlines() if topic in line).split()
    assert row[:6] == [group, topic, "0", "8", "10", "2"]
    assert "Empty" in groups(cluster, "--describe", "--group", group, "--state")
    where = ("--group", group, "--topic", topic)
    groups(cluster, "--reset-offsets", "--to-earliest", "--execute", *where)
    row = next(line for line in groups(cluster, "--describe", "--group", group).splitlines() if topic in line).split()
    assert row[3:6] == ["0", "10", "10"]
    assert "Successful" in groups(cluster, "--delete-offsets", *where)
    assert group in groups(cluster, "--list").split()
    groups(cluster, "--delete", "--group", group)
    assert group not in groups(cluster, "--list").split()


def test_kafka_dump_log_reads_what_groups_leave(cluster: Cluster, consumed: tuple[str, str], tmp_path: Path) -> None:
    group, topic = consumed
    folder = f"{OFFSETS_TOPIC}-{partition_of(group, PARTITIONS)}"
    # The tool wants a segment's own name, and a file that nobody writes to.
    copied = shutil.copy(cluster.log_directory(cluster.node_ids[0]) / folder / f"{0:020}.log", tmp_path)
    dumped = apache.tool(apache.DUMP_LOG, "--offsets-decoder", "--files", str(copied)).stdout
    commits = [line for line in dumped.splitlines() if f'"topic":"{topic}"' in line]
    # No quote behind the word: this client sends a zero byte along with it.
    assert any('"offset":8' in line and '"metadata":"noted' in line for line in commits), dumped
    assert any('"protocolType":"consumer"' in line and f'"group":"{group}"' in line for line in dumped.splitlines())
