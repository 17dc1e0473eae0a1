"""One transactional producer of a Python library, as its introduction shows it, and what it says when it begins.

    python transactional.py LIBRARY BOOTSTRAP TOPIC

LIBRARY is confluent, kafka-python or aiokafka. Prints a JSON object: the seconds that it took, the error with its type,
and whether the library calls it fatal (null where it has no such word). A process of its own: it may wait for minutes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any


def confluent(bootstrap: str, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "tx-confluent"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"value")
    producer.commit_transaction()


def kafka_python(bootstrap: str, topic: str) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="tx-kafka-python")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"value")
    producer.commit_transaction()


def aiokafka(bootstrap: str, topic: str) -> None:
    from aiokafka import AIOKafkaProducer

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="tx-aiokafka")
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"value")
        finally:
            await producer.stop()

    asyncio.run(run())


def fatal(error: BaseException) -> bool | None:
    word = getattr(error.args[0] if error.args else None, "fatal", None)  # confluent-kafka's KafkaError
    return bool(word()) if callable(word) else None


def main() -> None:
    library, bootstrap, topic = sys.argv[1:]
    run = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}[library]
    began = time.monotonic()
    found: dict[str, Any] = {"error": None, "fatal": None}
    try:
        run(bootstrap, topic)
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}", "fatal": fatal(error)}
    print(json.dumps({"seconds": round(time.monotonic() - began, 2), **found}), flush=True)


if __name__ == "__main__":
    main()
