"""confluent-kafka (librdkafka) at its defaults: produce, consume by assignment, and the admin client."""

from __future__ import annotations

import itertools
from collections.abc import Callable
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


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def result(futures: dict[Any, Any]) -> Any:
    """The result of the one future in an admin call's answer."""
    (future,) = futures.values()
    return future.result(TIMEOUT_S)


def create(cluster: Cluster, admin: Any, name: str, partitions: int = PARTITIONS, **config: str) -> str:
    """A topic with three replicas, of which every broker knows."""
    from confluent_kafka.admin import NewTopic

    dotted = {key.replace("_", "."): value for key, value in config.items()}
    result(admin.create_topics([NewTopic(name, partitions, 3, config=dotted)]))
    wait_in_sync(cluster, name)
    return name


class Sent:
    """A producer, and the outcome of every record that was given to it."""

    def __init__(self, cluster: Cluster, **config: Any) -> None:
        from confluent_kafka import Producer

        dotted = {key.replace("_", "."): value for key, value in config.items()}
        self.producer = Producer({"bootstrap.servers": cluster.bootstrap} | dotted)
        self.delivered: list[tuple[int, int]] = []
        self.errors: list[Any] = []

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.delivered.append((message.partition(), message.offset()))

    def send(self, topic: str, record: Sample) -> None:
        self.producer.produce(
            topic,
            value=record.value,
            key=record.key,
            partition=record.partition,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
            on_delivery=self._delivered,
        )

    def flush(self) -> None:
        assert self.producer.flush(TIMEOUT_S) == 0, "records were still unsent"

    def send_all(self, topic: str, records: list[Sample]) -> None:
        for record in records:
            self.send(topic, record)
        self.flush()
        assert self.errors == []
        assert len(self.delivered) == len(records)


def new_consumer(cluster: Cluster, **config: Any) -> Any:
    from confluent_kafka import Consumer

    by_assignment = {"group.id": "by-assignment", "enable.partition.eof": True, "enable.auto.commit": False}
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    return Consumer({"bootstrap.servers": cluster.bootstrap} | by_assignment | dotted)


def read_to_end(consumer: Any, topic: str, starts: dict[int, int]) -> dict[int, list[tuple[int, Sample]]]:
    """Assign, and read every partition from the given offset to its end: offset and record."""
    from confluent_kafka import KafkaError, TopicPartition

    consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in starts.items()])
    found: dict[int, list[tuple[int, Sample]]] = {partition: [] for partition in starts}
    unfinished = set(starts)
    while unfinished:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"nothing more came of {topic} {unfinished}"
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            unfinished.discard(message.partition())
            continue
        headers = tuple(message.headers() or ())
        timestamp_ms = message.timestamp()[1]
        record = Sample(message.partition(), timestamp_ms, message.key(), message.value(), headers)
        found[message.partition()].append((message.offset(), record))
    return found


@pytest.mark.parametrize("idempotent", [False, True], ids=["default", "idempotent"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_produced_is_consumed(
    cluster: Cluster, admin: Any, topic_name: str, compression: str, idempotent: bool
) -> None:
    from confluent_kafka import OFFSET_BEGINNING

    create(cluster, admin, topic_name)
    records = samples()
    Sent(cluster, compression_type=compression, enable_idempotence=idempotent).send_all(topic_name, records)

    consumer = new_consumer(cluster)
    found = read_to_end(consumer, topic_name, dict.fromkeys(range(PARTITIONS), OFFSET_BEGINNING))
    consumer.close()

    for partition, expected in by_partition(records).items():
        assert found[partition] == list(enumerate(expected))


def test_offsets_are_acknowledged_in_order(cluster: Cluster, admin: Any, topic_name: str) -> None:
    create(cluster, admin, topic_name)
    records = samples()
    sent = Sent(cluster)
    sent.send_all(topic_name, records)
    for partition, expected in by_partition(records).items():
        assert [offset for its, offset in sent.delivered if its == partition] == list(range(len(expected)))


def test_a_consumer_at_the_end_sees_only_what_comes_after(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import OFFSET_END, TopicPartition

    create(cluster, admin, topic_name, partitions=1)
    sent = Sent(cluster)
    sent.send_all(topic_name, [Sample(0, FIRST_TIMESTAMP_MS, None, b"before")])

    consumer = new_consumer(cluster)
    assert read_to_end(consumer, topic_name, {0: OFFSET_END}) == {0: []}
    consumer.assign([TopicPartition(topic_name, 0, 1)])
    sent.send(topic_name, Sample(0, FIRST_TIMESTAMP_MS, None, b"after"))
    sent.flush()
    message = next(message for message in iter(lambda: consumer.poll(TIMEOUT_S), None) if message.error() is None)
    consumer.close()
    assert (message.offset(), message.value()) == (1, b"after")


def test_offsets_by_timestamp_are_exact_inside_batches(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import TopicPartition

    create(cluster, admin, topic_name)
    records = samples()
    # One batch a partition: the timestamps asked for lie inside it.
    Sent(cluster, linger_ms=500, compression_type="lz4").send_all(topic_name, records)
    consumer = new_consumer(cluster)

    def offsets_for(timestamp_ms: int) -> dict[int, int]:
        asked = [TopicPartition(topic_name, partition, timestamp_ms) for partition in range(PARTITIONS)]
        return {each.partition: each.offset for each in consumer.offsets_for_times(asked, TIMEOUT_S)}

    for timestamp_ms in (
        0,
        FIRST_TIMESTAMP_MS,
        FIRST_TIMESTAMP_MS + 70 * STEP_MS,
        FIRST_TIMESTAMP_MS + 70 * STEP_MS + 1,
        FIRST_TIMESTAMP_MS + (len(records) - 1) * STEP_MS,
    ):
        expected = {
            partition: next((i for i, each in enumerate(its) if each.timestamp_ms >= timestamp_ms), -1)
            for partition, its in by_partition(records).items()
        }
        assert offsets_for(timestamp_ms) == expected, timestamp_ms
    after_all = offsets_for(FIRST_TIMESTAMP_MS + len(records) * STEP_MS)
    consumer.close()
    assert after_all == dict.fromkeys(range(PARTITIONS), -1)


def test_watermarks(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import TopicPartition

    create(cluster, admin, topic_name)
    records = samples(60)
    Sent(cluster).send_all(topic_name, records)
    consumer = new_consumer(cluster)
    ends = {
        partition: consumer.get_watermark_offsets(TopicPartition(topic_name, partition), timeout=TIMEOUT_S)
        for partition in range(PARTITIONS)
    }
    consumer.close()
    assert ends == {partition: (0, len(its)) for partition, its in by_partition(records).items()}


def test_a_message_above_the_topics_limit_is_refused(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import KafkaError

    create(cluster, admin, topic_name, partitions=1, max_message_bytes="20000")
    sent = Sent(cluster)
    sent.send(topic_name, Sample(0, FIRST_TIMESTAMP_MS, None, b"x" * 30_000))
    sent.flush()
    assert [error.code() for error in sent.errors] == [KafkaError.MSG_SIZE_TOO_LARGE]

    sent.send(topic_name, Sample(0, FIRST_TIMESTAMP_MS, None, b"x" * 10_000))
    sent.flush()
    assert sent.delivered == [(0, 0)]


def test_a_message_above_the_brokers_limit_is_refused(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import KafkaError

    create(cluster, admin, topic_name, partitions=1)
    sent = Sent(cluster, message_max_bytes=4_000_000)
    sent.send(topic_name, Sample(0, FIRST_TIMESTAMP_MS, None, b"x" * 2_000_000))
    sent.flush()
    assert [error.code() for error in sent.errors] == [KafkaError.MSG_SIZE_TOO_LARGE]


def test_a_large_message_within_the_limits_comes_back_whole(cluster: Cluster, admin: Any, topic_name: str) -> None:
    create(cluster, admin, topic_name, partitions=1, max_message_bytes="4000000")
    value = bytes(range(256)) * 12_000
    record = Sample(0, FIRST_TIMESTAMP_MS, None, value)
    Sent(cluster, message_max_bytes=4_000_000).send_all(topic_name, [record])
    consumer = new_consumer(cluster)
    found = read_to_end(consumer, topic_name, {0: 0})
    consumer.close()
    assert found == {0: [(0, record)]}


def test_producing_to_an_unknown_topic_creates_it(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka.admin import ConfigResource

    sent = Sent(cluster)
    sent.producer.produce(topic_name, b"first", on_delivery=sent._delivered)
    sent.flush()
    assert (sent.errors, sent.delivered) == ([], [(0, 0)])
    broker = ConfigResource(ConfigResource.Type.BROKER, str(cluster.node_ids[0]))
    defaults = result(admin.describe_configs([broker]))
    partitions = metadata(cluster, cluster.node_ids[0], (topic_name,)).topics[topic_name]
    assert len(partitions) == int(defaults["num.partitions"].value)
    assert {len(each.replicas) for each in partitions} == {int(defaults["default.replication.factor"].value)}


def test_consuming_an_unknown_topic_does_not_create_it(cluster: Cluster, topic_name: str) -> None:
    from confluent_kafka import KafkaError, TopicPartition

    consumer = new_consumer(cluster)
    consumer.assign([TopicPartition(topic_name, 0, 0)])
    reported = consumer.list_topics(topic_name, timeout=TIMEOUT_S).topics[topic_name]
    consumer.close()
    assert reported.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert topic_name not in metadata(cluster, cluster.node_ids[0]).topics


def test_metadata_names_brokers_and_partitions(cluster: Cluster, admin: Any, topic_name: str) -> None:
    create(cluster, admin, topic_name)
    reported = admin.list_topics(topic_name, timeout=TIMEOUT_S)
    ids = set(cluster.node_ids)
    assert {broker.id: (broker.host, broker.port) for broker in reported.brokers.values()} == {
        node_id: cluster.address(node_id) for node_id in ids
    }
    assert sorted(reported.topics[topic_name].partitions) == list(range(PARTITIONS))
    for partition in reported.topics[topic_name].partitions.values():
        assert set(partition.replicas) == set(partition.isrs) == ids
        assert partition.leader == partition.replicas[0]
    # Leaders are spread over the brokers.
    assert {partition.leader for partition in reported.topics[topic_name].partitions.values()} == ids


def test_describe_cluster_and_topics(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import TopicCollection

    create(cluster, admin, topic_name)
    described = admin.describe_cluster().result(TIMEOUT_S)
    assert {node.id for node in described.nodes} == set(cluster.node_ids)
    assert described.cluster_id

    topic = result(admin.describe_topics(TopicCollection([topic_name])))
    assert topic.name == topic_name
    assert not topic.is_internal
    assert [len(partition.replicas) for partition in topic.partitions] == [3] * PARTITIONS


def test_creating_a_topic_twice_or_wrongly_is_refused(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import NewTopic

    create(cluster, admin, topic_name)
    for wrong, code in (
        (NewTopic(topic_name, 1, 1), KafkaError.TOPIC_ALREADY_EXISTS),
        (NewTopic(f"{topic_name}-rf", 1, 9), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic(f"{topic_name}-partitions", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic(f"{topic_name}-config", 1, 1, config={"no.such.config": "1"}), KafkaError.INVALID_CONFIG),
        (NewTopic(f"{topic_name}-value", 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
        (NewTopic("not a topic name", 1, 1), KafkaError.TOPIC_EXCEPTION),
    ):
        with pytest.raises(KafkaException) as refused:
            result(admin.create_topics([wrong]))
        assert refused.value.args[0].code() == code, wrong


def test_a_dry_run_creates_nothing(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka.admin import NewTopic

    result(admin.create_topics([NewTopic(topic_name, 1, 1)], validate_only=True))
    assert topic_name not in metadata(cluster, cluster.node_ids[0]).topics


def test_delete_topic_and_make_it_anew(cluster: Cluster, admin: Any, topic_name: str) -> None:
    create(cluster, admin, topic_name, partitions=1)
    Sent(cluster).send_all(topic_name, [Sample(0, FIRST_TIMESTAMP_MS, None, b"of the first life")])
    result(admin.delete_topics([topic_name]))
    wait_for(lambda: topic_name not in metadata(cluster, cluster.node_ids[0]).topics, f"{topic_name} is gone")

    create(cluster, admin, topic_name, partitions=1)
    record = Sample(0, FIRST_TIMESTAMP_MS, None, b"of the second life")
    Sent(cluster).send_all(topic_name, [record])
    consumer = new_consumer(cluster)
    found = read_to_end(consumer, topic_name, {0: 0})
    consumer.close()
    assert found == {0: [(0, record)]}


def test_deleting_an_unknown_topic_is_refused(admin: Any, topic_name: str) -> None:
    from confluent_kafka import KafkaError, KafkaException

    with pytest.raises(KafkaException) as refused:
        result(admin.delete_topics([topic_name]))
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_running_producer_learns_of_added_partitions(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka.admin import NewPartitions

    create(cluster, admin, topic_name, partitions=1)
    sent = Sent(cluster, topic_metadata_refresh_interval_ms=100)
    sent.send_all(topic_name, [Sample(0, FIRST_TIMESTAMP_MS, None, b"zero")])
    result(admin.create_partitions([NewPartitions(topic_name, 3)]))
    wait_in_sync(cluster, topic_name)

    def known() -> bool:
        return len(sent.producer.list_topics(topic_name, timeout=TIMEOUT_S).topics[topic_name].partitions) == 3

    wait_for(known, "the producer knows three partitions")
    sent.send(topic_name, Sample(2, FIRST_TIMESTAMP_MS, None, b"two"))
    sent.flush()
    assert sent.errors == []
    assert sent.delivered == [(0, 0), (2, 0)]


def test_partitions_cannot_be_taken_away(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import NewPartitions

    create(cluster, admin, topic_name, partitions=3)
    with pytest.raises(KafkaException) as refused:
        result(admin.create_partitions([NewPartitions(topic_name, 2)]))
    assert refused.value.args[0].code() == KafkaError.INVALID_PARTITIONS


def test_delete_records_moves_the_start(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    create(cluster, admin, topic_name, partitions=1)
    records = [Sample(0, FIRST_TIMESTAMP_MS, None, plain(number)) for number in range(20)]
    Sent(cluster, linger_ms=0).send_all(topic_name, records)
    deleted = result(admin.delete_records([TopicPartition(topic_name, 0, 12)]))
    assert deleted.low_watermark == 12

    consumer = new_consumer(cluster)
    assert consumer.get_watermark_offsets(TopicPartition(topic_name, 0), timeout=TIMEOUT_S) == (12, 20)
    found = read_to_end(consumer, topic_name, {0: OFFSET_BEGINNING})
    consumer.close()
    assert [(offset, record.value) for offset, record in found[0]] == [(n, plain(n)) for n in range(12, 20)]


def test_a_consumer_out_of_range_resets(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import TopicPartition

    create(cluster, admin, topic_name, partitions=1)
    Sent(cluster).send_all(topic_name, [Sample(0, FIRST_TIMESTAMP_MS, None, b"only")])
    consumer = new_consumer(cluster, auto_offset_reset="earliest", enable_partition_eof=False)
    consumer.assign([TopicPartition(topic_name, 0, 1000)])
    message = consumer.poll(TIMEOUT_S)
    consumer.close()
    assert message is not None
    assert (message.error(), message.offset(), message.value()) == (None, 0, b"only")


def test_topic_configs_are_described_and_altered(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    create(cluster, admin, topic_name, retention_ms="7200000")

    def described() -> dict[str, Any]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic_name)
        configs: dict[str, Any] = result(admin.describe_configs([resource]))
        return configs

    before = described()
    assert (before["retention.ms"].value, before["retention.ms"].is_default) == ("7200000", False)
    assert before["cleanup.policy"].value == "delete"
    assert before["cleanup.policy"].is_default
    assert before["max.message.bytes"].value == "1048588"

    def alter(name: str, value: str | None, operation: Any) -> None:
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic_name, incremental_configs=[entry])
        result(admin.incremental_alter_configs([resource]))

    alter("segment.bytes", "2000000", AlterConfigOpType.SET)
    alter("cleanup.policy", "compact", AlterConfigOpType.APPEND)
    alter("retention.ms", None, AlterConfigOpType.DELETE)

    def altered() -> bool:
        now = described()
        return (
            now["segment.bytes"].value == "2000000"
            and sorted(now["cleanup.policy"].value.split(",")) == ["compact", "delete"]
            and now["retention.ms"].value == "604800000"
        )

    wait_for(altered, "the altered configs are described")


def test_a_wrong_config_is_refused(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    create(cluster, admin, topic_name)
    for name, value in (("no.such.config", "1"), ("min.insync.replicas", "none"), ("segment.bytes", "-5")):
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic_name, incremental_configs=[entry])
        with pytest.raises(KafkaException) as refused:
            result(admin.incremental_alter_configs([resource]))
        assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG, name


def test_broker_configs_are_described(cluster: Cluster, admin: Any) -> None:
    from confluent_kafka.admin import ConfigResource

    node_id = cluster.node_ids[0]
    configs = result(admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, str(node_id))]))
    host, port = cluster.address(node_id)
    assert configs["node.id"].value == str(node_id)
    assert f"{host}:{port}" in configs["advertised.listeners"].value
    assert configs["node.id"].is_read_only
    assert "broker.rack" in configs


def test_list_offsets(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    create(cluster, admin, topic_name, partitions=1)
    # The latest timestamp is not on the last record.
    stamps = [FIRST_TIMESTAMP_MS + step for step in (0, 10, 50, 20, 30)]
    Sent(cluster, linger_ms=200).send_all(topic_name, [Sample(0, stamp, None, b"v") for stamp in stamps])
    partition = TopicPartition(topic_name, 0)
    for spec, offset in (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 5),
        (OffsetSpec.max_timestamp(), 2),
        (OffsetSpec.for_timestamp(FIRST_TIMESTAMP_MS + 15), 2),
    ):
        assert result(admin.list_offsets({partition: spec})).offset == offset


def test_preferred_leaders_that_lead_need_no_election(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import ElectionType, KafkaError, TopicPartition

    create(cluster, admin, topic_name, partitions=1)
    outcome = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic_name, 0)]).result(TIMEOUT_S)
    assert [error.code() for error in outcome.values()] == [KafkaError.ELECTION_NOT_NEEDED]


def test_acks_all_waits_for_min_insync_replicas(cluster: Cluster, admin: Any, topic_name: str) -> None:
    """min.insync.replicas above the number of replicas counts as all of them, and so never blocks."""
    create(cluster, admin, topic_name, partitions=1, min_insync_replicas="3")
    Sent(cluster, acks="all").send_all(topic_name, [Sample(0, FIRST_TIMESTAMP_MS, None, b"on three")])


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks(cluster: Cluster, admin: Any, topic_name: str, acks: str) -> None:
    create(cluster, admin, topic_name, partitions=1)
    records = [Sample(0, FIRST_TIMESTAMP_MS + n, None, plain(n)) for n in range(50)]
    sent = Sent(cluster, acks=acks)
    for record in records:
        sent.send(topic_name, record)
    sent.flush()
    assert sent.errors == []
    consumer = new_consumer(cluster)

    def arrived() -> bool:
        return [record for _, record in read_to_end(consumer, topic_name, {0: 0})[0]] == records

    wait_for(arrived, "everything that was sent")
    consumer.close()


def test_log_append_time(cluster: Cluster, admin: Any, topic_name: str) -> None:
    from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, TopicPartition

    create(cluster, admin, topic_name, partitions=1, message_timestamp_type="LogAppendTime")
    Sent(cluster).send_all(topic_name, [Sample(0, FIRST_TIMESTAMP_MS, None, b"stamped by the broker")])
    consumer = new_consumer(cluster)
    consumer.assign([TopicPartition(topic_name, 0, 0)])
    message = consumer.poll(TIMEOUT_S)
    consumer.close()
    assert message is not None
    kind, timestamp_ms = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert timestamp_ms > FIRST_TIMESTAMP_MS


def test_many_topics_at_once(cluster: Cluster, admin: Any, new_topic_name: Callable[[], str]) -> None:
    from confluent_kafka.admin import NewTopic

    names = list(itertools.islice(iter(new_topic_name, ""), 20))
    futures = admin.create_topics([NewTopic(name, 4, 3) for name in names])
    for future in futures.values():
        future.result(TIMEOUT_S)
    sent = Sent(cluster)
    for name in names:
        for partition in range(4):
            sent.send(name, Sample(partition, FIRST_TIMESTAMP_MS, None, name.encode()))
    sent.flush()
    assert (sent.errors, len(sent.delivered)) == ([], 80)
    deleted = admin.delete_topics(names)
    for future in deleted.values():
        future.result(TIMEOUT_S)

    def gone() -> bool:
        return not metadata(cluster, cluster.node_ids[0]).topics.keys() & set(names)

    wait_for(gone, "the deleted topics are gone")
