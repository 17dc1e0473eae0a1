"""kafka-python 3 at its defaults (idempotent, fetch sessions), and its admin client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.samples import (
    COMPRESSIONS,
    FIRST_TIMESTAMP_MS,
    PARTITIONS,
    STEP_MS,
    Sample,
    by_partition,
    plain,
    samples,
)
from tests.interop.cluster import Cluster, metadata, wait_in_sync
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

TIMEOUT_S = 30.0
POLL_MS = 500


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[Any]:
    from kafka import KafkaAdminClient

    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    yield client
    client.close()


@pytest.fixture
def topic(cluster: Cluster, admin: Any, topic_name: str) -> str:
    """A topic of three partitions, each on three brokers."""
    admin.create_topics({topic_name: {"num_partitions": PARTITIONS, "replication_factor": 3}})
    wait_in_sync(cluster, topic_name)
    return topic_name


def send_all(cluster: Cluster, topic: str, records: list[Sample], **config: Any) -> list[tuple[int, int]]:
    """Produce the records; gives partition and offset of each."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, **config)
    try:
        futures = [
            producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        producer.flush(TIMEOUT_S)
        done = [future.get(TIMEOUT_S) for future in futures]
        return [(each.partition, each.offset) for each in done]
    finally:
        producer.close()


def new_consumer(cluster: Cluster, topic: str, partitions: int = PARTITIONS) -> tuple[Any, list[Any]]:
    """A consumer that is assigned all partitions, and those."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap)
    assigned = [TopicPartition(topic, partition) for partition in range(partitions)]
    consumer.assign(assigned)
    return consumer, assigned


def read_to_end(consumer: Any, assigned: list[Any]) -> dict[int, list[tuple[int, Sample]]]:
    """Every record from the consumer's positions to the present end of its partitions."""
    ends = consumer.end_offsets(assigned)
    found: dict[int, list[tuple[int, Sample]]] = {each.partition: [] for each in assigned}

    def all_read() -> bool:
        for records in consumer.poll(timeout_ms=POLL_MS).values():
            for record in records:
                headers = tuple((name, value) for name, value in record.headers)
                sample = Sample(record.partition, record.timestamp, record.key, record.value, headers)
                found[record.partition].append((record.offset, sample))
        return all(consumer.position(each) >= ends[each] for each in assigned)

    wait_for(all_read, "all records", timeout_s=TIMEOUT_S)
    return found


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_produced_is_consumed(cluster: Cluster, topic: str, compression: str) -> None:
    records = samples(null_headers=False)
    codec = None if compression == "none" else compression
    acknowledged = send_all(cluster, topic, records, compression_type=codec, linger_ms=20)
    consumer, assigned = new_consumer(cluster, topic)
    consumer.seek_to_beginning(*assigned)
    found = read_to_end(consumer, assigned)
    consumer.close()
    for partition, expected in by_partition(records).items():
        assert found[partition] == list(enumerate(expected))
        assert [offset for its, offset in acknowledged if its == partition] == list(range(len(expected)))


def test_ends_and_timestamps(cluster: Cluster, topic: str) -> None:
    records = samples(null_headers=False)
    send_all(cluster, topic, records, compression_type="gzip", linger_ms=200)
    consumer, assigned = new_consumer(cluster, topic)
    split = by_partition(records)
    assert {each.partition: offset for each, offset in consumer.beginning_offsets(assigned).items()} == dict.fromkeys(
        split, 0
    )
    assert {each.partition: offset for each, offset in consumer.end_offsets(assigned).items()} == {
        partition: len(its) for partition, its in split.items()
    }
    middle_ms = FIRST_TIMESTAMP_MS + 61 * STEP_MS - 3
    reported = consumer.offsets_for_times(dict.fromkeys(assigned, middle_ms))
    consumer.close()
    assert {each.partition: (at.offset, at.timestamp) for each, at in reported.items()} == {
        partition: next((i, each.timestamp_ms) for i, each in enumerate(its) if each.timestamp_ms >= middle_ms)
        for partition, its in split.items()
    }


def test_a_consumer_at_the_end_sees_only_what_comes_after(cluster: Cluster, topic: str) -> None:
    send_all(cluster, topic, [Sample(0, FIRST_TIMESTAMP_MS, None, b"before")])
    consumer, assigned = new_consumer(cluster, topic)
    consumer.seek_to_end(*assigned)
    assert read_to_end(consumer, assigned) == {0: [], 1: [], 2: []}
    after = Sample(0, FIRST_TIMESTAMP_MS, None, b"after")
    send_all(cluster, topic, [after])
    found = read_to_end(consumer, assigned)
    consumer.close()
    assert found[0] == [(1, after)]


def test_a_message_above_the_topics_limit_is_refused(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from kafka.errors import MessageSizeTooLargeError

    settings = {"num_partitions": 1, "replication_factor": 3, "configs": {"max.message.bytes": "20000"}}
    admin.create_topics({topic_name: settings})
    with pytest.raises(MessageSizeTooLargeError):
        send_all(cluster, topic_name, [Sample(0, FIRST_TIMESTAMP_MS, None, b"x" * 30_000)])


def test_producing_to_an_unknown_topic_creates_it(cluster: Cluster, topic_name: str) -> None:
    assert send_all(cluster, topic_name, [Sample(0, FIRST_TIMESTAMP_MS, None, b"first")]) == [(0, 0)]
    assert len(metadata(cluster, cluster.node_ids[0], (topic_name,)).topics[topic_name]) == 1


def test_topics_are_created_described_grown_and_deleted(cluster: Cluster, admin: Any, topic: str) -> None:
    (described,) = admin.describe_topics([topic])
    assert described["name"] == topic
    assert [len(partition["replica_nodes"]) for partition in described["partitions"]] == [3] * PARTITIONS
    (of_75,) = admin.describe_topic_partitions([topic])["topics"]
    assert [partition["partition_index"] for partition in of_75["partitions"]] == list(range(PARTITIONS))
    assert all(not partition["eligible_leader_replicas"] for partition in of_75["partitions"])

    admin.create_partitions({topic: 5})
    wait_for(
        lambda: len(metadata(cluster, cluster.node_ids[0], (topic,)).topics.get(topic, ())) == 5, "five partitions"
    )
    wait_in_sync(cluster, topic)
    assert send_all(cluster, topic, [Sample(4, FIRST_TIMESTAMP_MS, None, b"fifth")]) == [(4, 0)]

    admin.delete_topics([topic])
    wait_for(lambda: topic not in metadata(cluster, cluster.node_ids[0]).topics, "the topic is gone")


def test_cluster_is_described(cluster: Cluster, admin: Any) -> None:
    described = admin.describe_cluster()
    assert {broker["broker_id"]: (broker["host"], broker["port"]) for broker in described["brokers"]} == {
        node_id: cluster.address(node_id) for node_id in cluster.node_ids
    }


def test_configs_are_described_and_altered(admin: Any, topic: str) -> None:
    from kafka.admin import ConfigResource

    admin.alter_configs([ConfigResource("topic", topic, configs={"retention.ms": "3600000"})])

    def altered() -> bool:
        reported = admin.describe_configs([ConfigResource("topic", topic)], config_filter="modified")
        return bool(reported["topic"][topic].get("retention.ms", {}).get("value") == "3600000")

    wait_for(altered, "retention.ms is altered")


def test_delete_records_moves_the_start(cluster: Cluster, admin: Any, topic: str) -> None:
    from kafka import TopicPartition

    records = [Sample(1, FIRST_TIMESTAMP_MS, None, plain(number)) for number in range(30)]
    send_all(cluster, topic, records)
    admin.delete_records({TopicPartition(topic, 1): 7})
    consumer, assigned = new_consumer(cluster, topic)
    starts = consumer.beginning_offsets(assigned)
    consumer.seek_to_beginning(*assigned)
    found = read_to_end(consumer, assigned)
    consumer.close()
    assert {each.partition: offset for each, offset in starts.items()} == {0: 0, 1: 7, 2: 0}
    assert [(offset, record.value) for offset, record in found[1]] == [(n, plain(n)) for n in range(7, 30)]


def test_a_reassignment_moves_the_data(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from kafka import TopicPartition

    first, second, third = cluster.node_ids[:3]
    admin.create_topics({topic_name: {"assignments": {0: [first]}}})
    records = [Sample(0, FIRST_TIMESTAMP_MS, None, plain(number)) for number in range(100)]
    send_all(cluster, topic_name, records)
    admin.alter_partition_reassignments({TopicPartition(topic_name, 0): [third, second]})

    def moved() -> bool:
        (partition,) = metadata(cluster, second, (topic_name,)).topics[topic_name]
        return partition.replicas == (third, second) and partition.leader == third

    wait_for(moved, f"{topic_name} has moved")
    assert admin.list_partition_reassignments([TopicPartition(topic_name, 0)]) == {}
    consumer, assigned = new_consumer(cluster, topic_name, partitions=1)
    consumer.seek_to_beginning(*assigned)
    found = read_to_end(consumer, assigned)
    consumer.close()
    assert [record.value for _, record in found[0]] == [record.value for record in records]


def test_metadata_quorum_is_described(cluster: Cluster, admin: Any) -> None:
    described = admin.describe_metadata_quorum()
    (topic,) = described["topics"]
    (partition,) = topic["partitions"]
    assert {voter["replica_id"] for voter in partition["current_voters"]} == set(cluster.node_ids)
    assert partition["leader_id"] in cluster.node_ids
    assert partition["high_watermark"] > 0
