"""Steps with kafka-python. See `tests/clients/step_programs.py`.

It says that it has no broker and no time left; why, it writes to its log, which is reported with the error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.clients.steps.python_case import lines_of, settings

STEP_S = 20.0
BOOTSTRAP_MS = 3_000


class Provider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives the token of a case."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def create(config: dict[str, Any], topic: str) -> None:
    admin = KafkaAdminClient(**config, bootstrap_timeout_ms=BOOTSTRAP_MS)
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])
    finally:
        admin.close()


def produce(config: dict[str, Any], topic: str, values: list[str]) -> None:
    producer = KafkaProducer(**config, max_block_ms=5000)
    try:
        for sent in [producer.send(topic, value.encode()) for value in values]:
            sent.get(STEP_S)
    finally:
        producer.close(5)


def transaction(config: dict[str, Any], topic: str, id: str, values: list[str]) -> None:
    producer = KafkaProducer(**config, transactional_id=id, max_block_ms=5000)
    try:
        producer.init_transactions()
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value.encode())
        producer.commit_transaction()
    finally:
        producer.close(5)


def consume(config: dict[str, Any], topic: str, group: str, count: int) -> list[str]:
    consumer = KafkaConsumer(topic, **config, group_id=group, auto_offset_reset="earliest", consumer_timeout_ms=10_000)
    found = []
    try:
        for record in consumer:
            found.append(record.value.decode())
            if len(found) >= count:
                break
    finally:
        consumer.close(autocommit=False)
    return found


DO: dict[str, Callable[..., Any]] = {
    "create": create,
    "produce": produce,
    "transaction": transaction,
    "consume": consume,
}


def outcome(case: dict[str, Any], do: str, arguments: dict[str, Any]) -> dict[str, Any]:
    with lines_of("kafka") as lines:
        try:
            return {"value": DO[do](settings(case, Provider), **arguments)}
        except Exception as error:
            return {"error": "\n".join((repr(error), *lines))}


for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps([outcome(case, *step) for step in case["steps"]]), flush=True)
