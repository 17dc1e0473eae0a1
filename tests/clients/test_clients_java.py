"""The Java producer and consumer at their defaults, through Apache Kafka's own console tools.

Consumers are assigned their partition (`--partition`), as `kafka-console-consumer` allows.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients.samples import COMPRESSIONS
from tests.interop import apache
from tests.interop.cluster import Cluster, metadata, wait_in_sync
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.interop, pytest.mark.usefixtures("java")]


@pytest.fixture
def topic(cluster: Cluster, topic_name: str) -> str:
    return create(cluster, topic_name)


def create(cluster: Cluster, name: str, *configs: str, partitions: int = 1) -> str:
    """A topic with three replicas, made by kafka-topics."""
    settings = [part for config in configs for part in ("--config", config)]
    apache.tool(
        apache.TOPICS, "--bootstrap-server", cluster.bootstrap, "--create", "--topic", name,
        "--partitions", str(partitions), "--replication-factor", "3", *settings,
    )  # fmt: skip
    wait_in_sync(cluster, name)
    return name


def produce(cluster: Cluster, topic: str, lines: list[str], *arguments: str) -> apache.ToolOutput:
    """kafka-console-producer, with keys (`key:value`) and headers (`name=value\\t` before them)."""
    return apache.tool(
        apache.CONSOLE_PRODUCER, "--bootstrap-server", cluster.bootstrap, "--topic", topic,
        "--reader-property", "parse.key=true", "--reader-property", "key.separator=:",
        "--reader-property", "parse.headers=true", "--reader-property", "headers.key.separator==", *arguments,
        stdin="".join(f"{line}\n" for line in lines),
    )  # fmt: skip


def consume(cluster: Cluster, topic: str, count: int, *arguments: str, partition: int = 0) -> list[str]:
    """kafka-console-consumer on one partition: `offset headers key:value` of each record."""
    shown = [
        part
        for name in ("print.offset=true", "print.headers=true", "print.key=true", "key.separator=:")
        for part in ("--formatter-property", name)
    ]
    output = apache.tool(
        apache.CONSOLE_CONSUMER, "--bootstrap-server", cluster.bootstrap, "--topic", topic,
        "--partition", str(partition), "--max-messages", str(count), "--timeout-ms", "30000", *shown, *arguments,
    )  # fmt: skip
    assert f"Processed a total of {count} messages" in output.stderr, output
    return output.stdout.splitlines()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_produced_is_consumed(cluster: Cluster, topic: str, compression: str) -> None:
    count = 300
    lines = [f"trace={number}\tkey-{number % 7}:value {number} {'x' * (number % 90)}" for number in range(count)]
    produced = produce(cluster, topic, lines, "--compression-codec", compression)
    assert "ERROR" not in produced.stderr, produced
    shown = consume(cluster, topic, count, "--from-beginning")
    expected = []
    for offset, line in enumerate(lines):
        headers, _, record = line.replace("=", ":", 1).partition("\t")
        expected.append(f"Offset:{offset}:{headers}:{record}")
    assert shown == expected


def test_from_an_offset_and_from_the_end(cluster: Cluster, topic: str) -> None:
    produce(cluster, topic, [f"n={number}\tk:{number}" for number in range(20)])
    assert consume(cluster, topic, 3, "--offset", "15") == [f"Offset:{n}:n:{n}:k:{n}" for n in (15, 16, 17)]
    nothing = apache.try_tool(
        apache.CONSOLE_CONSUMER, "--bootstrap-server", cluster.bootstrap, "--topic", topic, "--partition", "0",
        "--offset", "latest", "--timeout-ms", "2000",
    )  # fmt: skip
    assert "Processed a total of 0 messages" in nothing.stderr, nothing


def test_the_idempotent_producer_acknowledges_every_record(cluster: Cluster, topic_name: str) -> None:
    """The Java producer's defaults: acks=all, idempotent, five requests in flight."""
    create(cluster, topic_name, "min.insync.replicas=2", partitions=3)
    output = apache.tool(
        apache.VERIFIABLE_PRODUCER, "--bootstrap-server", cluster.bootstrap, "--topic", topic_name,
        "--max-messages", "5000",
    )  # fmt: skip
    events = [json.loads(line) for line in output.stdout.splitlines() if line.startswith("{")]
    acknowledged = [event for event in events if event["name"] == "producer_send_success"]
    assert [event for event in events if event["name"] == "producer_send_error"] == []
    assert len(acknowledged) == 5000
    for partition in range(3):
        offsets = [event["offset"] for event in acknowledged if event["partition"] == partition]
        assert offsets == list(range(len(offsets)))


def test_a_message_above_the_topics_limit_is_refused(cluster: Cluster, topic_name: str) -> None:
    create(cluster, topic_name, "max.message.bytes=20000")
    refused = produce(cluster, topic_name, [f"n=1\tk:{'x' * 30_000}"])
    assert "RecordTooLargeException" in refused.stderr, refused
    produce(cluster, topic_name, [f"n=2\tk:{'x' * 10_000}"])
    assert consume(cluster, topic_name, 1, "--from-beginning") == [f"Offset:0:n:2:k:{'x' * 10_000}"]


def test_a_batch_above_the_limit_is_split(cluster: Cluster, topic_name: str) -> None:
    """On MESSAGE_TOO_LARGE the Java producer splits a batch of several records, and goes on in order."""
    create(cluster, topic_name, "max.message.bytes=5000")
    # No more than one batch: several that are split at once can trip over their sequence numbers (in the client).
    lines = [f"n={number}\tk:{number} {'x' * 800}" for number in range(12)]
    produced = produce(cluster, topic_name, lines, "--command-property", "linger.ms=300")
    assert "MESSAGE_TOO_LARGE" in produced.stderr, produced
    assert "ERROR" not in produced.stderr, produced
    shown = consume(cluster, topic_name, 12, "--from-beginning")
    assert shown == [f"Offset:{n}:n:{n}:k:{n} {'x' * 800}" for n in range(12)]


def test_producing_to_an_unknown_topic_creates_it(cluster: Cluster, topic_name: str) -> None:
    produce(cluster, topic_name, ["n=1\tk:first"])
    wait_in_sync(cluster, topic_name)
    assert consume(cluster, topic_name, 1, "--from-beginning") == ["Offset:0:n:1:k:first"]


def get_offsets(cluster: Cluster, topic: str, time: str) -> dict[int, int]:
    output = apache.tool(
        apache.GET_OFFSETS, "--bootstrap-server", cluster.bootstrap, "--topic", topic, "--time", time
    ).stdout
    found = {}
    for line in output.split():
        name, partition, offset = line.rsplit(":", 2)
        assert name == topic
        found[int(partition)] = int(offset)
    return found


def test_get_offsets_and_delete_records(cluster: Cluster, topic_name: str, tmp_path: Path) -> None:
    create(cluster, topic_name, partitions=2)
    lines = [f"n={number}\tkey-{number}:{number}" for number in range(200)]
    produce(cluster, topic_name, lines)
    ends = get_offsets(cluster, topic_name, "latest")
    assert sum(ends.values()) == 200
    assert get_offsets(cluster, topic_name, "earliest") == {0: 0, 1: 0}
    assert get_offsets(cluster, topic_name, "0") == {0: 0, 1: 0}
    assert get_offsets(cluster, topic_name, "max-timestamp").keys() == {0, 1}

    wanted = tmp_path / "delete.json"
    partitions = [{"topic": topic_name, "partition": 1, "offset": 40}]
    wanted.write_text(json.dumps({"partitions": partitions, "version": 1}))
    deleted = apache.tool(
        apache.DELETE_RECORDS, "--bootstrap-server", cluster.bootstrap, "--offset-json-file", str(wanted)
    )
    assert f"partition: {topic_name}-1\tlow_watermark: 40" in deleted.stdout, deleted
    assert get_offsets(cluster, topic_name, "earliest") == {0: 0, 1: 40}
    first = consume(cluster, topic_name, 1, "--from-beginning", partition=1)
    assert first[0].startswith("Offset:40:")


def test_a_running_producer_follows_a_moved_leader(cluster: Cluster, topic_name: str) -> None:
    """Metadata refresh: the leader moves while a Java producer sends, and every record is acknowledged in order."""
    first, second, third = cluster.node_ids[:3]
    create(cluster, topic_name)
    before = metadata(cluster, first, (topic_name,)).leaders(topic_name)[0]
    order = sorted(cluster.node_ids, key=lambda node_id: node_id == before)
    assert order[-1] == before
    process = apache.RunningTool(
        apache.VERIFIABLE_PRODUCER, "--bootstrap-server", cluster.bootstrap, "--topic", topic_name,
        "--max-messages", "3000", "--throughput", "1000",
    )  # fmt: skip
    with process:
        process.wait_for_line('"producer_send_success"')
        reassign = {"version": 1, "partitions": [{"topic": topic_name, "partition": 0, "replicas": order}]}
        apache.reassign(cluster.bootstrap, reassign)
        apache.tool(
            apache.LEADER_ELECTION, "--bootstrap-server", cluster.bootstrap, "--election-type", "preferred",
            "--topic", topic_name, "--partition", "0",
        )  # fmt: skip
        output = process.finish()
    assert {first, second, third} == set(order)
    assert wait_for(
        lambda: metadata(cluster, first, (topic_name,)).leaders(topic_name)[0] == order[0], "the leader has moved"
    )
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    offsets = [event["offset"] for event in events if event["name"] == "producer_send_success"]
    assert offsets == list(range(3000))
