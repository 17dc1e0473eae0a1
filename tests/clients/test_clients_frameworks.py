"""Applications of stream frameworks, each a process: they go on where they were after a stop and a broker's death."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients import install
from tests.clients.topics import create_topics
from tests.interop.cluster import Cluster, wait_in_sync
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

APPLICATIONS = Path(__file__).parent / "frameworks"
PARTITIONS = 3
KEYS = 5
RECORDS = 60
SETTLE_S = 60.0
END_S = 120.0
# Within one minute, and so within one window.
FIRST_TIMESTAMP_MS = 1_700_000_000_000 // 60_000 * 60_000


@pytest.fixture(scope="module")
def interpreter() -> Path:
    return install.frameworks()


@pytest.fixture
def topics(cluster: Cluster, new_topic_name: Callable[[], str]) -> tuple[str, str]:
    """A source and a target, made and in sync."""
    names = new_topic_name(), new_topic_name()
    create_topics(cluster, *names, partitions=PARTITIONS)
    return names


def produce(cluster: Cluster, topic: str, numbers: range) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in numbers:
        key = f"key-{number % KEYS}".encode()
        producer.produce(topic, str(number).encode(), key=key, timestamp=FIRST_TIMESTAMP_MS + number)
    assert producer.flush(30) == 0


@contextmanager
def reading(cluster: Cluster, topic: str) -> Iterator[Callable[[int], list[tuple[bytes, Any]]]]:
    """Gives a function that waits until so many records are there, and gives key and JSON value of all read so far."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found: list[tuple[bytes, Any]] = []

    def read(count: int) -> list[tuple[bytes, Any]]:
        def enough() -> bool:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append((message.key(), json.loads(message.value())))
            return len(found) >= count and message is None

        wait_for(enough, f"{count} records in {topic}", timeout_s=SETTLE_S)
        return found

    try:
        yield read
    finally:
        consumer.close()


@contextmanager
def application(interpreter: Path, log: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The application as a process, which is killed if it still runs in the end."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(interpreter), str(APPLICATIONS / name), *arguments], stdout=output, stderr=subprocess.STDOUT
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(10)


@pytest.mark.parametrize("library", ["confluent", "aiokafka"])
def test_faststream_handles_each_record_once_over_a_restart(
    interpreter: Path, cluster: Cluster, topics: tuple[str, str], tmp_path: Path, library: str
) -> None:
    source, target = topics
    log = tmp_path / "application.log"
    with reading(cluster, target) as read:
        for round_ in (1, 2):
            produce(cluster, source, range((round_ - 1) * RECORDS, round_ * RECORDS))
            where = (library, cluster.bootstrap, f"group-of-{source}", source, target)
            with application(interpreter, log, "faststream_doubler.py", *where) as process:
                doubled = sorted(value for _, value in read(round_ * RECORDS))
                assert doubled == [2 * number for number in range(round_ * RECORDS)], log.read_text()
                process.terminate()
                assert process.wait(END_S) == 0, log.read_text()


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_quixstreams_finds_its_windows_again_in_the_changelog_when_a_broker_has_died(
    interpreter: Path, cluster: Cluster, topics: tuple[str, str], tmp_path: Path, guarantee: str
) -> None:
    """The second application has nothing on its own disk: what it counts on from can only come from the changelog."""
    source, target = topics
    group = f"group-of-{source}"
    log = tmp_path / "application.log"
    victim = cluster.node_ids[0]

    def run(round_: int) -> None:
        state = tmp_path / f"state-{round_}"
        where = (guarantee, cluster.bootstrap, group, source, target, str(state), str(RECORDS))
        with application(interpreter, log, "quixstreams_windows.py", *where) as process:
            assert process.wait(END_S) == 0, log.read_text()

    with reading(cluster, target) as read:
        produce(cluster, source, range(RECORDS))
        run(1)
        assert counts_of(read(RECORDS)) == expected_counts(RECORDS), log.read_text()
        assert changelogs(cluster, group), "no changelog topic was made"
        cluster.kill_node(victim)
        try:
            produce(cluster, source, range(RECORDS, 2 * RECORDS))
            run(2)
            assert counts_of(read(2 * RECORDS)) == expected_counts(2 * RECORDS), log.read_text()
        finally:
            cluster.start_node(victim)
            wait_in_sync(cluster, source)


def counts_of(records: list[tuple[bytes, Any]]) -> Counter[tuple[bytes, int]]:
    """Each key with its counts, as reported so far."""
    return Counter((key, value["value"]) for key, value in records)


def expected_counts(records: int) -> Counter[tuple[bytes, int]]:
    """Each count of each key was reported once."""
    return Counter((f"key-{key}".encode(), count) for key in range(KEYS) for count in range(1, records // KEYS + 1))


def changelogs(cluster: Cluster, group: str) -> list[str]:
    """The compacted topics that quixstreams has made for the group's state."""
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    names = [name for name in admin.list_topics(timeout=30).topics if name.startswith(f"changelog__{group}--")]
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described = admin.describe_configs(resources) if resources else {}
    return [each.name for each, future in described.items() if "compact" in future.result(30)["cleanup.policy"].value]
