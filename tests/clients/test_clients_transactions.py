"""Transactional producers of each library commit, abort and are fenced; committed records alone are read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients import builds, install
from tests.clients.exactly_once import Committed, produce
from tests.clients.topics import create_topics
from tests.interop import apache
from tests.interop.cluster import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

PATIENCE_S = 60.0
"""Of the whole process, on a busy machine."""
COPIED = 100
LIBRARIES = ["confluent", "kafka-python", "aiokafka", "kafkajs", "franz"]


def reported(library: str, program: str, *arguments: str, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
    """What a program says in the end: `transactional` or `copier`, as each library has them."""
    environment: Mapping[str, str] = {}
    if library == "kafkajs":
        if (reason := builds.missing_node()) is not None:
            pytest.skip(reason)
        command = ["node", str(builds.KAFKAJS / f"{program}.js")]
        environment = {"NODE_PATH": str(builds.node_modules()), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    elif library == "franz":
        if (reason := builds.missing_go()) is not None:
            pytest.skip(reason)
        command = [str(builds.franz(program))]
    else:
        command = [sys.executable, str(Path(__file__).with_name(f"{program}.py")), library]
        environment = {"PYTHONPATH": str(install.install())}
    done = subprocess.run(
        [*command, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_transactional_producer_commits(library: str, cluster: Cluster, topic_name: str) -> None:
    create_topics(cluster, topic_name, partitions=1)
    found = reported(library, "transactional", cluster.bootstrap, topic_name)
    assert found["error"] is None, found
    assert committed_values(cluster.bootstrap, topic_name, 1) == [b"value"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_group_reads_and_writes_in_transactions(
    library: str, cluster: Cluster, new_topic_name: Callable[[], str]
) -> None:
    """Some are aborted, and read again: each record is in the target once; the group's offset is behind the last."""
    source, target, group = new_topic_name(), new_topic_name(), f"copiers-{new_topic_name()}"
    create_topics(cluster, source, target, partitions=1)
    values = [str(number) for number in range(COPIED)]
    produce(cluster, source, values, partitions=1)
    where = (cluster.bootstrap, source, target, group, str(COPIED))
    counts = reported(library, "copier", *where, timeout_s=2 * PATIENCE_S)
    assert counts["committed"] >= COPIED // 10, counts
    assert counts["aborted"] >= 2, counts
    with Committed(cluster, target, 1) as read:
        read.wait_for(COPIED)
        read.wait_for_the_end()
        assert [each.value().decode() for each in read.messages] == values
    assert committed_offset(cluster, group, source) == COPIED


def committed_offset(cluster: Cluster, group: str, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE_S)
        return int(found.offset)
    finally:
        consumer.close()


@pytest.mark.usefixtures("java")
def test_javas_transactional_producer_commits(cluster: Cluster, topic_name: str) -> None:
    create_topics(cluster, topic_name, partitions=3)
    done = apache.try_tool(
        apache.PRODUCER_PERFORMANCE, "--bootstrap-server", cluster.bootstrap, "--topic", topic_name,
        "--num-records", "5000", "--record-size", "100", "--throughput", "-1",
        "--transactional-id", f"tx-{topic_name}", "--transaction-duration-ms", "50",
        timeout_s=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert len(committed_values(cluster.bootstrap, topic_name, 5000)) == 5000


def test_what_is_aborted_is_not_read_and_the_next_producer_fences_the_last(cluster: Cluster, topic_name: str) -> None:
    from confluent_kafka import KafkaException, Producer

    create_topics(cluster, topic_name, partitions=1)
    config = {"bootstrap.servers": cluster.bootstrap, "transactional.id": f"tx-{topic_name}"}
    first = Producer(config)
    first.init_transactions(30)
    for number, ends in enumerate((first.commit_transaction, first.abort_transaction, first.commit_transaction)):
        first.begin_transaction()
        for index in range(10):
            first.produce(topic_name, f"{number}-{index}".encode())
        ends(30)
    first.begin_transaction()
    first.produce(topic_name, b"open")
    first.flush(30)
    second = Producer(config)
    second.init_transactions(30)  # aborts it
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(30)
    assert refused.value.args[0].fatal(), refused.value
    expected = [f"{number}-{index}".encode() for number in (0, 2) for index in range(10)]
    assert committed_values(cluster.bootstrap, topic_name, 20) == expected


def committed_values(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """Records of partition 0 to 2 that a reader of committed ones gets, once there are so many, and no more come."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{topic}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    values: list[bytes] = []
    ended: set[int] = set()
    deadline = time.monotonic() + PATIENCE_S
    try:
        consumer.subscribe([topic])
        while time.monotonic() < deadline and (len(values) < count or not ended):
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error():
                ended.add(message.partition())
            else:
                values.append(message.value())
    finally:
        consumer.close()
    return values
