"""A member of a group that copies one topic to another exactly once, with a Python library.

    python copier.py LIBRARY BOOTSTRAP SOURCE TARGET GROUP COUNT

LIBRARY is confluent, kafka-python or aiokafka. Each transaction takes up to ten records, writes them, and commits the
offsets behind them. Every third one is aborted, and its records are read again. It ends when COUNT records are copied,
and prints how many transactions were committed and aborted, as JSON. A process of its own: it may wait for minutes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count as numbers
from typing import Any

BATCH = 10
POLL_S = 1.0
PATIENCE_S = 60.0


class Plan:
    """Which transactions are aborted, until enough is copied."""

    def __init__(self, count: int) -> None:
        self.counts: Counter[str] = Counter()
        self._left = count

    def outcomes(self) -> Iterator[bool]:
        """For each transaction, whether it is to be committed."""
        for number in numbers(1):
            if self._left <= 0:
                return
            yield number % 3 != 0

    def ended(self, committed: bool, records: int) -> None:
        self.counts["committed" if committed else "aborted"] += 1
        self._left -= records if committed else 0


def confluent(bootstrap: str, source: str, target: str, group: str, plan: Plan) -> None:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

    common = {"bootstrap.servers": bootstrap}
    consumer = Consumer(common | {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    consumer.subscribe([source])
    producer = Producer(common | {"transactional.id": group})
    producer.init_transactions(PATIENCE_S)
    for committed in plan.outcomes():
        batch: list[Any] = []
        while not batch:
            batch = [each for each in consumer.consume(BATCH, POLL_S) if each.error() is None]
        producer.begin_transaction()
        for each in batch:
            producer.produce(target, each.value(), partition=each.partition())
        positions = consumer.position(consumer.assignment())
        offsets = [each for each in positions if each.offset >= 0]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE_S)
        if committed:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
            for each in consumer.committed(consumer.assignment(), PATIENCE_S):
                offset = each.offset if each.offset >= 0 else OFFSET_BEGINNING
                consumer.seek(TopicPartition(each.topic, each.partition, offset))
        plan.ended(committed, len(batch))
    consumer.close()


def kafka_python(bootstrap: str, source: str, target: str, group: str, plan: Plan) -> None:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.structs import OffsetAndMetadata

    consumer = KafkaConsumer(
        source, bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=group)
    producer.init_transactions()
    for committed in plan.outcomes():
        found: dict[Any, list[Any]] = {}
        while not found:
            found = consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=BATCH)
        producer.begin_transaction()
        for place, records in found.items():
            for each in records:
                producer.send(target, each.value, partition=place.partition)
        offsets = {place: OffsetAndMetadata(records[-1].offset + 1, "", -1) for place, records in found.items()}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        if committed:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
            for place in found:
                consumer.seek(place, consumer.committed(place) or 0)
        plan.ended(committed, sum(map(len, found.values())))
    consumer.close()
    producer.close()


def aiokafka(bootstrap: str, source: str, target: str, group: str, plan: Plan) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            source, bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=group)
        await consumer.start()
        await producer.start()
        for committed in plan.outcomes():
            found: dict[Any, list[Any]] = {}
            while not found:
                found = await consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=BATCH)
            await producer.begin_transaction()
            for place, records in found.items():
                for each in records:
                    await producer.send(target, each.value, partition=place.partition)
            offsets = {place: records[-1].offset + 1 for place, records in found.items()}
            await producer.send_offsets_to_transaction(offsets, group)
            if committed:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
                for place in found:
                    consumer.seek(place, await consumer.committed(place) or 0)
            plan.ended(committed, sum(map(len, found.values())))
        await consumer.stop()
        await producer.stop()

    asyncio.run(run())


def main(library: str, bootstrap: str, source: str, target: str, group: str, count: str) -> None:
    plan = Plan(int(count))
    {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}[library](
        bootstrap, source, target, group, plan
    )
    print(json.dumps(plan.counts), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
