"""aiokafka at its defaults, and idempotent."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from tests.clients.samples import (
    COMPRESSIONS,
    FIRST_TIMESTAMP_MS,
    PARTITIONS,
    STEP_MS,
    Sample,
    by_partition,
    samples,
)
from tests.interop.cluster import Cluster, metadata, wait_in_sync

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

TIMEOUT_S = 30.0
T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(work, 2 * TIMEOUT_S)

    return asyncio.run(bounded())


async def create(cluster: Cluster, topic: str, partitions: int = PARTITIONS, **config: str) -> None:
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    await admin.start()
    try:
        dotted = {key.replace("_", "."): value for key, value in config.items()}
        response = await admin.create_topics([NewTopic(topic, partitions, 3, topic_configs=dotted)])
        assert [error for _, error, *_ in response.topic_errors] == [0]
    finally:
        await admin.close()
    wait_in_sync(cluster, topic)


async def send_all(cluster: Cluster, topic: str, records: list[Sample], **config: Any) -> list[tuple[int, int]]:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, **config)
    await producer.start()
    try:
        futures = [
            await producer.send(
                topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
                headers=list(record.headers),
            )
            for record in records
        ]
        done = await asyncio.gather(*futures)
        return [(each.partition, each.offset) for each in done]
    finally:
        await producer.stop()


async def read(cluster: Cluster, topic: str, counts: dict[int, int]) -> dict[int, list[tuple[int, Sample]]]:
    """From the beginning, the given number of records of each partition."""
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap)
    await consumer.start()
    try:
        assigned = [TopicPartition(topic, partition) for partition in counts]
        consumer.assign(assigned)
        await consumer.seek_to_beginning(*assigned)
        found: dict[int, list[tuple[int, Sample]]] = {partition: [] for partition in counts}
        while any(len(found[partition]) < count for partition, count in counts.items()):
            record = await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
            sample = Sample(record.partition, record.timestamp, record.key, record.value, tuple(record.headers))
            found[record.partition].append((record.offset, sample))
        return found
    finally:
        await consumer.stop()


@pytest.mark.parametrize("idempotent", [False, True], ids=["default", "idempotent"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_produced_is_consumed(cluster: Cluster, topic_name: str, compression: str, idempotent: bool) -> None:
    records = samples(null_headers=False)
    split = by_partition(records)

    async def there_and_back() -> None:
        await create(cluster, topic_name)
        codec = None if compression == "none" else compression
        acknowledged = await send_all(
            cluster, topic_name, records, compression_type=codec, enable_idempotence=idempotent, linger_ms=20
        )
        found = await read(cluster, topic_name, {partition: len(its) for partition, its in split.items()})
        for partition, expected in split.items():
            assert found[partition] == list(enumerate(expected))
            assert [offset for its, offset in acknowledged if its == partition] == list(range(len(expected)))

    run(there_and_back())


def test_ends_and_timestamps(cluster: Cluster, topic_name: str) -> None:
    records = samples(null_headers=False)
    split = by_partition(records)
    middle_ms = FIRST_TIMESTAMP_MS + 61 * STEP_MS - 3

    async def ask() -> None:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        await create(cluster, topic_name)
        # Its default is acks=1, after which the end a consumer sees may still lag behind.
        await send_all(cluster, topic_name, records, compression_type="snappy", linger_ms=100, acks="all")
        consumer = AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap)
        await consumer.start()
        try:
            partitions = {number: TopicPartition(topic_name, number) for number in split}
            starts = await consumer.beginning_offsets(list(partitions.values()))
            ends = await consumer.end_offsets(list(partitions.values()))
            reported = await consumer.offsets_for_times(dict.fromkeys(partitions.values(), middle_ms))
        finally:
            await consumer.stop()
        for number, its in split.items():
            assert (starts[partitions[number]], ends[partitions[number]]) == (0, len(its))
            at = reported[partitions[number]]
            assert (at.offset, at.timestamp) == next(
                (i, each.timestamp_ms) for i, each in enumerate(its) if each.timestamp_ms >= middle_ms
            )

    run(ask())


def test_a_message_above_the_topics_limit_is_refused(cluster: Cluster, topic_name: str) -> None:
    async def refuse() -> None:
        from aiokafka.errors import MessageSizeTooLargeError

        await create(cluster, topic_name, partitions=1, max_message_bytes="20000")
        with pytest.raises(MessageSizeTooLargeError):
            await send_all(cluster, topic_name, [Sample(0, FIRST_TIMESTAMP_MS, None, b"x" * 30_000)])

    run(refuse())


def test_producing_to_an_unknown_topic_creates_it(cluster: Cluster, topic_name: str) -> None:
    record = Sample(0, FIRST_TIMESTAMP_MS, None, b"first")
    assert run(send_all(cluster, topic_name, [record])) == [(0, 0)]
    assert len(metadata(cluster, cluster.node_ids[0], (topic_name,)).topics[topic_name]) == 1


def test_an_idle_consumer_wakes_for_a_new_record(cluster: Cluster, topic_name: str) -> None:
    """A long poll that waits at the end is answered by the append, not by its timeout."""

    async def wake() -> None:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        await create(cluster, topic_name, partitions=1)
        consumer = AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap, fetch_max_wait_ms=60_000)
        await consumer.start()
        try:
            consumer.assign([TopicPartition(topic_name, 0)])
            await consumer.seek_to_beginning()
            coming = asyncio.ensure_future(consumer.getone())
            await send_all(cluster, topic_name, [Sample(0, FIRST_TIMESTAMP_MS, None, b"wake up")])
            record = await asyncio.wait_for(coming, TIMEOUT_S)
            assert (record.offset, record.value) == (0, b"wake up")
        finally:
            await consumer.stop()

    run(wake())
