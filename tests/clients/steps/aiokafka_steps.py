"""Steps with aiokafka. See `tests/clients/step_programs.py`.

Why it finds no broker it writes to its log, which is reported with the error.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code

from tests.clients.steps.python_case import lines_of, settings

STEP_S = 20.0


class Provider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives the token of a case."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


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
    with lines_of("aiokafka") as lines:
        try:
            return {"value": await asyncio.wait_for(DO[do](settings(case, Provider), **arguments), STEP_S)}
        except Exception as error:
            return {"error": "\n".join((repr(error), *lines))}


async def outcomes(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [await outcome(case, *step) for step in case["steps"]]


for line in sys.stdin:
    print(json.dumps(asyncio.run(outcomes(json.loads(line)))), flush=True)
