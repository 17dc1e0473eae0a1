"""Each fault by request, as each client library meets it; and the examples of Apache Kafka's proxy (KAFKA-21074)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tanist.testing import Kafka
from tests.clients import install
from tests.testing.conftest import values
from tests.testing.senders import SENDERS, Sender

pytestmark = pytest.mark.clients

APP = "orders-app"
DELAY_S = 1.0


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.create_topic(kafka.topic("orders"), assignment=[(1, 2, 3)])


@pytest.fixture(params=SENDERS)
def sender(request: pytest.FixtureRequest, kafka: Kafka, topic: str) -> Iterator[Sender]:
    """It has its connections and its metadata."""
    sender = SENDERS[request.param](kafka.bootstrap, topic, APP)
    sender.send("order 0")
    yield sender
    sender.close()


@pytest.fixture
def own(kafka: Kafka, topic: str) -> str:
    """The topic, where Python's own libraries can be imported."""
    install.activate()
    return topic


def test_an_error_is_tried_again(kafka: Kafka, topic: str, sender: Sender) -> None:
    fault = kafka.inject_error("PRODUCE", "NOT_ENOUGH_REPLICAS").of_client(APP).once()
    sender.send("order 1")
    assert (fault.hits, fault.calls >= 2) == (1, True)
    assert values(kafka, topic) == ["order 0", "order 1"], "the attempt that was refused has left nothing"


def test_a_slow_response_is_waited_for(kafka: Kafka, topic: str, sender: Sender) -> None:
    fault = kafka.delay_on("PRODUCE", DELAY_S).of_client(APP).once()
    began = time.monotonic()
    sender.send("order 1")
    assert time.monotonic() - began >= DELAY_S
    assert fault.hits == 1
    assert values(kafka, topic) == ["order 0", "order 1"]


def test_a_connection_that_ends_is_made_anew(kafka: Kafka, topic: str, sender: Sender) -> None:
    fault = kafka.disconnect_on("PRODUCE").of_client(APP).once()
    sender.send("order 1")
    assert fault.hits == 1
    assert set(values(kafka, topic)) == {"order 0", "order 1"}


def test_a_blackholed_client_gets_through_when_it_is_over(kafka: Kafka, topic: str, sender: Sender) -> None:
    fault = kafka.blackhole_client(APP).every_time()
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(sender.send, "order 1")
        fault.wait_for_hits(2)
        assert not sending.done()
        assert values(kafka, topic) == ["order 0"]
        fault.remove()
        sending.result(60)
    assert values(kafka, topic) == ["order 0", "order 1"]


# -- KAFKA-21074's own examples, by what they show


def reader(kafka: Kafka, group: str, client_id: str = "reader", **more: Any) -> Any:
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": group, "client.id": client_id, "log_level": 0}
    return Consumer(settings | {"auto.offset.reset": "earliest"} | more)


def test_a_producer_recovers_from_one_error_and_a_consumer_reads_all(kafka: Kafka, own: str) -> None:
    """The example with plain clients."""
    from confluent_kafka import Producer

    fault = kafka.inject_error("PRODUCE", "NOT_ENOUGH_REPLICAS").once()
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True, "log_level": 0})
    failed: list[Any] = []
    for number in range(50):
        producer.produce(own, f"v{number}", f"k{number % 3}", on_delivery=lambda error, _: failed.append(error))
        producer.flush(30)
    assert failed == [None] * 50
    assert fault.hits == 1
    consumer = reader(kafka, kafka.group("all"))
    consumer.subscribe([own])
    found = [consumer.poll(30).value().decode() for _ in range(50)]
    consumer.close()
    assert sorted(found) == sorted(f"v{number}" for number in range(50))


def test_only_the_first_response_is_late(kafka: Kafka, own: str) -> None:
    """The example of a delay."""
    sender = SENDERS["confluent-kafka"](kafka.bootstrap, own, APP)
    fault = kafka.delay_on("PRODUCE", 1.5).once()
    began = time.monotonic()
    sender.send("v0")
    assert time.monotonic() - began >= 1.5
    sender.send("v1")
    sender.close()
    assert fault.hits == 1


def test_a_blackholed_member_loses_its_partitions_and_returns(kafka: Kafka) -> None:
    """Its coordinator evicts it when its session is over, though it has never left."""
    install.activate()
    topic = kafka.create_topic(kafka.topic("orders"), partitions=2)
    group = kafka.group("readers")
    quick = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "socket.timeout.ms": 2000}
    members = [reader(kafka, group, client_id, **quick) for client_id in ("first-reader", "second-reader")]
    for member in members:
        member.subscribe([topic])
    first, second = members

    def hold(*numbers: int) -> Callable[[], bool]:
        def look() -> bool:
            for member in members:
                member.poll(0.1)
            return tuple(len(member.assignment()) for member in members) == numbers

        return look

    kafka.wait_until(hold(1, 1), timeout=60)
    fault = kafka.blackhole_client("first-reader").every_time()

    def second_has_all() -> bool:
        first.poll(0)
        second.poll(0.1)
        return len(second.assignment()) == 2

    kafka.wait_until(second_has_all, timeout=60)
    assert fault.hits > 0
    fault.remove()
    kafka.wait_until(hold(1, 1), timeout=90)
    for member in members:
        member.close()
