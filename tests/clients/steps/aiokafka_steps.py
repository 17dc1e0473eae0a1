"""Steps with aiokafka. See `tests/clients/step_programs.py`.

Why it finds no broker it writes to its log, which is reported with the error.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code

STEP_S = 20.0


class Lines(logging.Handler):
    """What the client has written to its log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def settings(case: dict[str, Any]) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=case["ca"])
    if "certificate" in case:
        context.load_cert_chain(case["certificate"])
    found = {
        "bootstrap_servers": case["bootstrap"],
        "security_protocol": case["protocol"],
        "ssl_context": context,
    }
    if "mechanism" in case:
        found["sasl_mechanism"] = case["mechanism"]
    if "username" in case:
        found |= {"sasl_plain_username": case["username"], "sasl_plain_password": case["password"]}
    if "token" in case:

        class Provider(AbstractTokenProvider):  # type: ignore[misc]
            async def token(self) -> str:
                return str(case["token"])

        found["sasl_oauth_token_provider"] = Provider()
    return found


async def create(config: dict[str, Any], topic: str) -> None:
    admin = AIOKafkaAdminClient(**config)
    try:
        await admin.start()
        answer = await admin.create_topics([NewTopic(topic, 1, 1)])
        for _, code, *_ in answer.topic_errors:
            if code:
                raise for_code(code)
    finally:
        await admin.close()


async def produce(config: dict[str, Any], topic: str, values: list[str]) -> None:
    async with AIOKafkaProducer(**config) as producer:
        for value in values:
            await producer.send_and_wait(topic, value.encode())


async def transaction(config: dict[str, Any], topic: str, id: str, values: list[str]) -> None:
    async with AIOKafkaProducer(**config, transactional_id=id) as producer, producer.transaction():
        for value in values:
            await producer.send_and_wait(topic, value.encode())


async def consume(config: dict[str, Any], topic: str, group: str, count: int) -> list[str]:
    consumer = AIOKafkaConsumer(topic, **config, group_id=group, auto_offset_reset="earliest")
    try:
        await consumer.start()
        return [(await consumer.getone()).value.decode() for _ in range(count)]
    finally:
        await consumer.stop()


DO: dict[str, Callable[..., Awaitable[Any]]] = {
    "create": create,
    "produce": produce,
    "transaction": transaction,
    "consume": consume,
}


async def outcome(case: dict[str, Any], do: str, arguments: dict[str, Any]) -> dict[str, Any]:
    handler = Lines()
    logging.getLogger("aiokafka").addHandler(handler)
    try:
        return {"value": await asyncio.wait_for(DO[do](settings(case), **arguments), STEP_S)}
    except Exception as error:
        return {"error": "\n".join((repr(error), *handler.lines))}
    finally:
        logging.getLogger("aiokafka").removeHandler(handler)


async def outcomes(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [await outcome(case, *step) for step in case["steps"]]


for line in sys.stdin:
    print(json.dumps(asyncio.run(outcomes(json.loads(line)))), flush=True)
