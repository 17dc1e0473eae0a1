"""A micro-batch as one transaction: readers of committed records see all of it, or nothing (docs/spark.md).

A transaction has one producer, and a producer's batches in a partition are numbered by one hand. So the tasks encode
and compress their rows into batches and hand them to the driver, which writes them all. The same transaction commits
the number of the next micro-batch as an offset of a group of the query's own. A run that is not sure whether a
micro-batch was committed initializes the producer, which ends the transaction of an earlier run, and then reads that
offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pyspark.sql.datasource import WriterCommitMessage

from tanist.client.topic_partition import TopicPartition
from tanist.client.transactions import PRODUCE_VERSION_MAX
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.transactional import TransactionalProducer
from tanist.spark.sink.encoding import Sealed, Sealing, seal_again
from tanist.spark.sink.producer import TaskProducer

_UNNUMBERED: Final = Sealing(-1, -1, -1)


@dataclass
class TaskStaged(WriterCommitMessage):
    """The batches of one task, in their order, without a producer."""

    query: str
    batches: Sequence[tuple[TopicPartition, Sealed]]


class Stage:
    """What a task has instead of a producer: it keeps the batches."""

    def __init__(self) -> None:
        self.batches: list[tuple[TopicPartition, Sealed]] = []

    def sealing(self, where: TopicPartition) -> Sealing:
        """The driver numbers the batches."""
        return _UNNUMBERED

    def send(self, where: TopicPartition, batch: Sealed) -> None:
        # The records are a stretch of the memory of many.
        self.batches.append((where, Sealed(batch.header, bytes(batch.records), batch.count)))

    def flush(self) -> None:
        """Nothing is on its way."""

    def close(self) -> None:
        """Nothing is open."""


def write_transaction(
    client: Client, messages: Sequence[TaskStaged], batch_id: int, prefix: str, timeout_ms: int
) -> bool:
    """Write a micro-batch in one transaction; False if that was done by an earlier run."""
    batches = [each for message in messages for each in message.batches]
    if not batches:
        return False
    transactional_id = group = f"{prefix}-{messages[0].query}"
    transaction = TransactionalProducer(client, transactional_id, timeout_ms=timeout_ms)
    transaction.initialize()
    if max(transaction.committed_offsets(group).values(), default=0) > batch_id:
        return False
    producer = TaskProducer(client, *transaction.transactions.producer, transactional_id, PRODUCE_VERSION_MAX)
    try:
        transaction.add_partitions({where for where, _ in batches})
        for where, batch in batches:
            producer.send(where, seal_again(batch, producer.sealing(where), transactional=True))
        producer.flush()
        transaction.commit_offsets(group, {(min(where[0] for where, _ in batches), 0): batch_id + 1})
    except BaseException:
        producer.close()
        with suppress(KafkaError, Unreachable, Unsupported):
            transaction.end(committed=False)
        raise
    producer.close()
    transaction.end(committed=True)
    return True
