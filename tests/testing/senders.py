"""Producers of each client library, as a test of faults needs them: one value at a time, each tried again after 2 s.

Python's run here; those of Node.js, Go and Java are processes that read values and print them once acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from typing import Any, Protocol

import pytest

from tests.clients import builds, install
from tests.interop import apache

TRY_AGAIN_MS = 2000


class Sender(Protocol):
    def send(self, value: str) -> None:
        """Returns when the value is acknowledged."""

    def close(self) -> None: ...


class Confluent:
    def __init__(self, bootstrap: str, topic: str, client_id: str) -> None:
        from confluent_kafka import Producer

        self._topic = topic
        settings = {"bootstrap.servers": bootstrap, "client.id": client_id, "socket.timeout.ms": TRY_AGAIN_MS}
        self._producer = Producer(settings | {"log_level": 0, "request.timeout.ms": TRY_AGAIN_MS // 2})

    def send(self, value: str) -> None:
        failed: list[Any] = []
        self._producer.produce(self._topic, value, on_delivery=lambda error, _: failed.append(error))
        self._producer.flush(60)
        assert failed == [None]

    def close(self) -> None:
        self._producer.flush(5)


class KafkaPython:
    def __init__(self, bootstrap: str, topic: str, client_id: str) -> None:
        from kafka import KafkaProducer

        self._topic = topic
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap.split(","), client_id=client_id, request_timeout_ms=TRY_AGAIN_MS
        )

    def send(self, value: str) -> None:
        self._producer.send(self._topic, value.encode()).get(60)

    def close(self) -> None:
        self._producer.close(timeout=5)


class AioKafka:
    def __init__(self, bootstrap: str, topic: str, client_id: str) -> None:
        from aiokafka import AIOKafkaProducer

        self._topic = topic
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

        async def start() -> Any:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap, client_id=client_id, request_timeout_ms=TRY_AGAIN_MS
            )
            await producer.start()
            return producer

        self._producer = self._awaited(start())

    def _awaited(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def send(self, value: str) -> None:
        from aiokafka.errors import KafkaError

        while True:  # its timeout is one of the record too, so an application has to send it again
            try:
                self._awaited(self._producer.send_and_wait(self._topic, value.encode()))
                return
            except KafkaError as error:
                if not error.retriable:
                    raise

    def close(self) -> None:
        self._awaited(self._producer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Program:
    """A sender that is a process."""

    def __init__(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            env=os.environ | (environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, value: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{value}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == f"{value}\n"

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def kafkajs(*where: str) -> Program:
    if reason := builds.missing_node():
        pytest.skip(reason)
    environment = {"NODE_PATH": str(builds.node_modules()), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    return Program(["node", str(builds.KAFKAJS / "sender.js"), *where], environment)


def franz(*where: str) -> Program:
    if reason := builds.missing_go():
        pytest.skip(reason)
    return Program([str(builds.franz("sender")), *where])


def java(*where: str) -> Program:
    if reason := apache.missing():
        pytest.skip(reason)
    apache.jars()
    source = str(builds.HERE / "java" / "Sender.java")
    return Program(apache.java_command(source, *where, flags=apache.TOOL_FLAGS))


def python(make: Callable[..., Sender]) -> Callable[..., Sender]:
    def begin(*where: str) -> Sender:
        install.activate()
        return make(*where)

    return begin


SENDERS: dict[str, Callable[..., Sender]] = {
    "confluent-kafka": python(Confluent),
    "kafka-python": python(KafkaPython),
    "aiokafka": python(AioKafka),
    "kafkajs": kafkajs,
    "franz-go": franz,
    "java": java,
}
"""Library -> BOOTSTRAP, TOPIC, CLIENT_ID -> a sender."""
