"""One member of a group, as a process that can be killed: subscribes, and tells what it is assigned and what it reads.

    python -m tests.clients.group_member LIBRARY BOOTSTRAP GROUP TOPIC

Prints what Apache's VerifiableConsumer prints: a JSON object a line, `partitions_assigned` with all that it has now,
and `record_data` for each record, after which it commits. SIGTERM makes it leave its group and end.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterable
from typing import Any

from tests.clients import install

SESSION_TIMEOUT_MS = 6_000
POLL_MS = 200


class Leaving:
    """Set by SIGTERM, and looked at between polls."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, _number: int, _frame: object) -> None:
        self.asked = True


def tell(name: str, **more: Any) -> None:
    print(json.dumps({"name": name, **more}), flush=True)


def tell_assigned(partitions: Iterable[int]) -> None:
    tell("partitions_assigned", partitions=[{"partition": index} for index in sorted(partitions)])


def confluent(bootstrap: str, group: str, topic: str, leaving: Leaving) -> None:
    from confluent_kafka import Consumer

    classic = {"session.timeout.ms": SESSION_TIMEOUT_MS, "heartbeat.interval.ms": 500}
    consumer = Consumer(_confluent_settings(bootstrap, group) | classic)
    consumer.subscribe([topic], on_assign=lambda _, parts: tell_assigned(part.partition for part in parts))
    _confluent_loop(consumer, leaving)


def confluent_consumer(bootstrap: str, group: str, topic: str, leaving: Leaving) -> None:
    """The same with the protocol of KIP-848: assignments come and go by parts, and the sessions are the broker's."""
    from confluent_kafka import Consumer

    consumer = Consumer(_confluent_settings(bootstrap, group) | {"group.protocol": "consumer"})

    def assigned(_: Consumer, parts: list[Any]) -> None:
        consumer.incremental_assign(parts)
        tell_assigned(part.partition for part in consumer.assignment())

    def revoked(_: Consumer, parts: list[Any]) -> None:
        consumer.incremental_unassign(parts)
        tell_assigned(part.partition for part in consumer.assignment())

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    _confluent_loop(consumer, leaving)


def _confluent_settings(bootstrap: str, group: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }


def _confluent_loop(consumer: Any, leaving: Leaving) -> None:
    while not leaving.asked:
        message = consumer.poll(POLL_MS / 1000)
        if message is not None and message.error() is None:
            tell("record_data", partition=message.partition(), offset=message.offset())
            consumer.commit(message, asynchronous=False)
    consumer.close()


def kafka_python(bootstrap: str, group: str, topic: str, leaving: Leaving) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            """What is taken away is in the next assignment no more."""

        def on_partitions_assigned(self, assigned: Any) -> None:
            tell_assigned(part.partition for part in consumer.assignment())

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=500,
    )
    consumer.subscribe([topic], listener=Listener())
    while not leaving.asked:
        for messages in consumer.poll(timeout_ms=POLL_MS).values():
            for message in messages:
                tell("record_data", partition=message.partition, offset=message.offset)
            consumer.commit()
    consumer.close()


def aiokafka(bootstrap: str, group: str, topic: str, leaving: Leaving) -> None:
    import aiokafka as library

    class Listener(library.ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:
            """What is taken away is in the next assignment no more."""

        async def on_partitions_assigned(self, assigned: Any) -> None:
            tell_assigned(part.partition for part in assigned)

    async def consume() -> None:
        consumer = library.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=500,
        )
        consumer.subscribe([topic], listener=Listener())
        await consumer.start()
        try:
            while not leaving.asked:
                for messages in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                    for message in messages:
                        tell("record_data", partition=message.partition, offset=message.offset)
                    await consumer.commit()
        finally:
            await consumer.stop()

    asyncio.run(consume())


LIBRARIES = {
    "confluent": confluent,
    "confluent-consumer": confluent_consumer,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}

if __name__ == "__main__":
    install.activate()
    LIBRARIES[sys.argv[1]](sys.argv[2], sys.argv[3], sys.argv[4], Leaving())
