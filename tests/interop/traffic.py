"""Records written to, and read back from, a cluster by confluent-kafka: what the interoperability tests compare."""

from __future__ import annotations

from typing import Any

from tests.clients.samples import COMPRESSIONS, Sample, samples
from tests.interop.cluster import Cluster
from tests.interop.waiting import wait_for

TIMEOUT_S = 30.0
# Small batches, so that a segment holds many of them and its index has entries.
BATCH_BYTES = 16_384
REPEAT = 60


def enlarged(records: list[Sample]) -> list[Sample]:
    """The samples on partition 0, with values large enough to fill segments."""
    return [
        Sample(0, record.timestamp_ms, record.key, record.value and record.value * REPEAT, record.headers)
        for record in records
    ]


def create_topic(cluster: Cluster, topic: str, replicas: int, **config: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    (future,) = admin.create_topics([NewTopic(topic, 1, replicas, config=dotted)]).values()
    future.result(TIMEOUT_S)


def produce(cluster: Cluster, topic: str, records: list[Sample], **config: Any) -> None:
    from confluent_kafka import Producer

    errors: list[Any] = []
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    settings = {"bootstrap.servers": cluster.bootstrap, "batch.size": BATCH_BYTES, "linger.ms": 5} | dotted
    producer = Producer(settings)

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            errors.append(error)

    for record in records:
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            partition=record.partition,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
            on_delivery=delivered,
        )
    if producer.flush(TIMEOUT_S) or errors:
        raise AssertionError(f"not all of {len(records)} records were acknowledged: {errors[:3]}")


def produce_every_way(cluster: Cluster, topic: str, count: int = 200) -> list[Sample]:
    """Every compression, idempotent and not; gives what partition 0 must hold."""
    sent: list[Sample] = []
    for compression in COMPRESSIONS:
        for idempotent in (True, False):
            records = enlarged(samples(count))
            produce(cluster, topic, records, compression_type=compression, enable_idempotence=idempotent)
            sent += records
    return sent


def consume(cluster: Cluster, topic: str, count: int) -> list[tuple[int, Sample]]:
    """Offset and record of the first `count` records of partition 0."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "interop", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[tuple[int, Sample]] = []

    def all_read() -> bool:
        for message in consumer.consume(500, timeout=1.0):
            if message.error() is None:
                headers = tuple(message.headers() or ())
                record = Sample(0, message.timestamp()[1], message.key(), message.value(), headers)
                found.append((message.offset(), record))
        return len(found) >= count

    try:
        wait_for(all_read, f"{count} records of {topic}", timeout_s=TIMEOUT_S)
    finally:
        consumer.close()
    return found
