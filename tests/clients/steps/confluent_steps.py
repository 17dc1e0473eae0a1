"""Steps with confluent-kafka. See `tests/clients/step_programs.py`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

STEP_S = 20.0


class StepFailed(Exception):
    """An error of the client's own, in its words."""


def settings(case: dict[str, Any], errors: list[Any]) -> dict[str, Any]:
    found = {
        "bootstrap.servers": case["bootstrap"],
        "security.protocol": case["protocol"],
        "error_cb": errors.append,
        "log_level": 0,
    }
    names = {
        "ca": ("ssl.ca.location",),
        "certificate": ("ssl.certificate.location", "ssl.key.location"),
        "mechanism": ("sasl.mechanism",),
        "username": ("sasl.username",),
        "password": ("sasl.password",),
    }
    for name, value in case.items():
        found.update(dict.fromkeys(names.get(name, ()), value))
    if "token" in case:
        found["oauth_cb"] = lambda _: (case["token"], time.time() + 300)
    return found


def waited(done: Callable[[], bool], errors: list[Any]) -> None:
    """Until it is done, or the client has said that it has an error."""
    deadline = time.monotonic() + STEP_S
    while not done():
        # "All brokers are down" comes behind the reason.
        if errors:
            raise StepFailed(said(errors[0]))
        if time.monotonic() > deadline:
            raise StepFailed("no time left")


def said(error: Any) -> str:
    return f"{error.name()}: {error.str()}"


def create(config: dict[str, Any], errors: list[Any], topic: str) -> None:
    admin = AdminClient(config)
    (future,) = admin.create_topics([NewTopic(topic, 1, 1)]).values()
    waited(lambda: admin.poll(0.05) is None or future.done(), errors)
    future.result()


def produce(config: dict[str, Any], errors: list[Any], topic: str, values: list[str]) -> None:
    producer = Producer(config)
    reports: list[Any] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: reports.append(error))
    waited(lambda: producer.poll(0.05) is None or len(reports) == len(values), errors)
    failed = [error for error in reports if error is not None]
    if failed:
        raise StepFailed(said(failed[0]))


def transaction(config: dict[str, Any], errors: list[Any], topic: str, id: str, values: list[str]) -> None:
    producer = Producer({**config, "transactional.id": id})
    producer.init_transactions(STEP_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.commit_transaction(STEP_S)


def consume(config: dict[str, Any], errors: list[Any], topic: str, group: str, count: int) -> list[str]:
    consumer = Consumer({**config, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[str] = []

    def all_there() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is not None:
            raise StepFailed(said(message.error()))
        if message is not None:
            found.append(message.value().decode())
        return len(found) >= count

    try:
        waited(all_there, errors)
    finally:
        consumer.close()
    return found


DO: dict[str, Callable[..., Any]] = {
    "create": create,
    "produce": produce,
    "transaction": transaction,
    "consume": consume,
}


def outcome(case: dict[str, Any], do: str, arguments: dict[str, Any]) -> dict[str, Any]:
    errors: list[Any] = []
    try:
        return {"value": DO[do](settings(case, errors), errors, **arguments)}
    except StepFailed as failed:
        return {"error": str(failed)}
    except KafkaException as failed:
        return {"error": said(failed.args[0])}


for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps([outcome(case, *step) for step in case["steps"]]), flush=True)
