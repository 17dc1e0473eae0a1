"""What the tests of `tanist.testing` share. They use its own fixtures: `kafka_cluster` and `kafka`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer
from tanist.testing import Kafka
from tanist.wire.batch import NewRecord

Send = Callable[..., int]


@pytest.fixture
def send(kafka: Kafka) -> Send:
    """Sends values to partition 0 of a topic, acknowledged as `acks` says; gives the offset of the first."""

    def send_values(topic: str, values: Iterable[str], *, acks: int = -1, timeout_s: float = 20.0) -> int:
        with Client(parse_bootstrap(kafka.bootstrap), client_id="orders-app", timeout_s=timeout_s) as client:
            producer = Producer(client, acks=acks, idempotent=False)
            return producer.send(topic, 0, [NewRecord(value=value.encode()) for value in values])

    return send_values


def values(kafka: Kafka, topic: str) -> list[str]:
    return [(record.value or b"").decode() for record in kafka.records(topic)]
