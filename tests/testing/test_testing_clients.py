"""Faults by request as real clients meet them, each library at its defaults but for what a test is about."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import pytest

from tanist.testing import Kafka
from tests.clients import install

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    install.activate()


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.create_topic(kafka.topic("orders"))


@pytest.mark.parametrize(
    ("error", "idempotent", "copies"),
    [
        ("NOT_ENOUGH_REPLICAS", True, 1),
        ("NOT_ENOUGH_REPLICAS", False, 1),
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", True, 1),
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", False, 3),
    ],
)
def test_confluent_kafka_tries_again(kafka: Kafka, topic: str, error: str, idempotent: bool, copies: int) -> None:
    """What is refused is not in the log; of what was appended each time only an idempotent producer leaves one."""
    from confluent_kafka import Producer

    fault = kafka.inject_error("PRODUCE", error).times(2)
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "enable.idempotence": idempotent, "retry.backoff.ms": 10, "log_level": 0}
    )
    failed: list[Any] = []
    producer.produce(topic, b"order 1", on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(30) == 0
    assert failed == [None]
    assert fault.hits == 2
    assert [record.value for record in kafka.records(topic)] == [b"order 1"] * copies


def test_a_commit_whose_answer_is_lost_is_committed(kafka: Kafka, topic: str) -> None:
    """KAFKA-21074's first example, for offsets: the connection ends in place of the answer."""
    from confluent_kafka import Consumer, KafkaException, Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    producer.produce(topic, b"order 1")
    assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": kafka.group("readers"),
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    message = consumer.poll(30)
    assert message is not None
    fault = kafka.disconnect_on("OFFSET_COMMIT").once()
    with suppress(KafkaException):  # librdkafka may say that the broker is gone, or try again
        consumer.commit(message, asynchronous=False)
    fault.wait_for_hits(1)
    assert [each.offset for each in consumer.committed(consumer.assignment(), 30)] == [1]
    consumer.close()


def test_kafka_python_survives_a_connection_that_ends(kafka: Kafka, topic: str) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap.split(","))
    producer.send(topic, b"order 1").get(30)
    fault = kafka.disconnect_on("PRODUCE").once()
    producer.send(topic, b"order 2").get(30)
    producer.close()
    assert fault.hits == 1
    assert {record.value for record in kafka.records(topic)} == {b"order 1", b"order 2"}


def test_aiokafka_waits_for_a_slow_answer_and_looks_again_after_an_error(kafka: Kafka, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def story() -> tuple[float, bytes]:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)
        await producer.start()
        await producer.send_and_wait(topic, b"order 1")
        slow = await asyncio.to_thread(kafka.delay_on("PRODUCE", 0.5).once)
        began = time.monotonic()
        await producer.send_and_wait(topic, b"order 2")
        took_s = time.monotonic() - began
        await producer.stop()
        assert slow.hits == 1
        wrong = await asyncio.to_thread(kafka.inject_error("FETCH", "NOT_LEADER_OR_FOLLOWER").once)
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        message = await asyncio.wait_for(consumer.getone(), 120)
        await consumer.stop()
        assert wrong.hits == 1
        return took_s, message.value

    took_s, value = asyncio.run(story())
    assert took_s >= 0.5
    assert value == b"order 1"
