"""A transactional producer of an old client, by single requests: begin, add a partition, write."""

from __future__ import annotations

import time

from tanist.runtime.client.client import Client
from tanist.runtime.client.transactional import TransactionalProducer
from tanist.wire.batch import NewRecord

FEW_TRANSACTIONS = [
    "--config",
    "transaction.state.log.num.partitions=1",
    "--config",
    "transaction.partition.verification.enable=false",
]
"""As brokers were before KIP-890: a transaction can hang."""


def begin(client: Client, transactional_id: str) -> tuple[int, int]:
    producer = TransactionalProducer(client, transactional_id)
    producer.initialize()
    return producer.transactions.producer


def write(
    client: Client, transactional_id: str, producer: tuple[int, int], partition: int, topic: str = "orders"
) -> int:
    """Gives the offset. The record is of now: an old one is deleted by the next look at `retention.ms`."""
    record = NewRecord(time.time_ns() // 1_000_000, None, b"value")
    return _begun(client, transactional_id, producer).write(topic, partition, [record])


def add(
    client: Client, transactional_id: str, producer: tuple[int, int], partition: int, topic: str = "orders"
) -> None:
    _begun(client, transactional_id, producer).add_partitions([(topic, partition)])


def _begun(client: Client, transactional_id: str, producer: tuple[int, int]) -> TransactionalProducer:
    begun = TransactionalProducer(client, transactional_id)
    begun.transactions.begin_as(producer)
    return begun
