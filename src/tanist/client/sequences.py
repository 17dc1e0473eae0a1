"""The batches of a producer, and their sequence numbers if it is idempotent (KIP-98): the next of each partition, and
under which id.

A batch keeps its numbers however often it is sent: a log that has it says so. After a batch whose outcome is not known
the next number is not known either, so its partition, or the whole producer, begins anew under another id or epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from tanist.client.topic_partition import TopicPartition
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData

ProducerEpoch: TypeAlias = tuple[int, int]
"""Producer id and epoch."""
VERSION_MAX: Final = 12
"""Of Produce, the last that names a topic by its name; later ones use its id."""
NO_PRODUCER: Final[ProducerEpoch] = (-1, -1)
_MASK: Final = 0x7FFFFFFF
"""After the last number comes 0."""


class Sequences:
    def __init__(self) -> None:
        self.producer = NO_PRODUCER
        self._next: dict[TopicPartition, int] = {}
        self._others: dict[TopicPartition, ProducerEpoch] = {}
        """Partitions that have begun anew by themselves."""

    def begin(self, producer: ProducerEpoch) -> None:
        """All partitions begin at 0 under a new id or epoch. Nothing changes if it is the same."""
        if producer != self.producer or self._others:
            self.producer = producer
            self._next.clear()
            self._others.clear()

    def begin_in(self, where: TopicPartition, producer: ProducerEpoch) -> None:
        """One partition begins anew; the others have batches under way."""
        self._others[where] = producer
        self._next[where] = 0

    def producer_of(self, where: TopicPartition) -> ProducerEpoch:
        return self._others.get(where, self.producer)

    def next_of(self, where: TopicPartition) -> int:
        """The number of the next record."""
        return self._next.get(where, 0)

    def batch(
        self, where: TopicPartition, records: Sequence[NewRecord], *, compression: int = 0, transactional: bool = False
    ) -> bytes:
        """The next batch of a partition. It has no number before there is a producer id."""
        producer_id, producer_epoch = self.producer_of(where)
        batch = encode_batch(
            records,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=-1 if producer_id < 0 else self.next_of(where),
            transactional=transactional,
        )
        return bytes(batch)

    def advance(self, where: TopicPartition, count: int) -> None:
        """So many records are in the log, or on their way in this order."""
        self._next[where] = (self.next_of(where) + count) & _MASK

    def continue_at(self, where: TopicPartition, sequence: int) -> None:
        """The records before this number are in the log."""
        self._next[where] = sequence & _MASK


def produce_request(
    where: TopicPartition, batch: Any, *, timeout_ms: int, acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    """One batch for one partition. Its leader may wait for the other replicas for `timeout_ms`."""
    topic, partition = where
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
    )


def new_producer_id() -> InitProducerIdRequest:
    """For a producer without transactions: any broker answers."""
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
