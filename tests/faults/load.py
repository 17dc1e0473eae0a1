"""A constant load that survives brokers: confluent-kafka, idempotent, acks=all, and a note of every acknowledgement.

Each record says which partition it is for and its number there, so that the log can be compared with the notes.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from tests.faults.history import Ack, Stored
from tests.interop.cluster import Cluster, client_settings
from tests.interop.waiting import wait_for

PADDING = b"." * 80
READ_TIMEOUT_S = 120.0


def value(partition: int, number: int) -> bytes:
    return b"%d/%d/" % (partition, number) + PADDING


def number_of(stored: bytes, partition: int) -> int:
    """The number in a value; raises if it is not a record of this partition."""
    its_partition, number, padding = stored.split(b"/", 2)
    if int(its_partition) != partition or padding != PADDING:
        raise ValueError(f"partition {partition} holds a foreign record: {stored[:60]!r}")
    return int(number)


@dataclass(slots=True)
class Load:
    """A thread that produces `rate` records a second, evenly over the partitions, until it is stopped."""

    cluster: Cluster
    topic: str
    partitions: int
    rate: float
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the producer, over its defaults."""
    acks: list[Ack] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    sent: dict[int, int] = field(default_factory=dict)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _failure: BaseException | None = None
    _unsent: int = 0
    _abandoned: bool = False

    def start(self) -> None:
        self.sent = dict.fromkeys(range(self.partitions), 0)
        self._thread = threading.Thread(target=self._run, name="load")
        self._thread.start()

    def stop(self, timeout_s: float = 120.0) -> None:
        """Stop sending, and wait until every record has its outcome."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout_s + 30)
        if self._failure is not None:
            raise RuntimeError("the load failed") from self._failure
        if self._unsent:
            raise RuntimeError(f"{self._unsent} records have no outcome")

    def abandon(self) -> None:
        """Stop sending, whatever becomes of what is under way: for a run that has failed already."""
        self._abandoned = True
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(30)

    def acknowledged_since(self, at_s: float) -> set[int]:
        """The partitions of which a record was acknowledged after a time."""
        found = set()
        for ack in reversed(self.acks):
            if ack.at_s <= at_s:
                break
            found.add(ack.partition)
        return found

    def _run(self) -> None:
        try:
            self._produce()
        except BaseException as error:
            self._failure = error

    def _produce(self) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            client_settings(self.cluster)
            | {
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                # A silence must not make the load less constant than it is meant to be.
                "queue.buffering.max.messages": 1_000_000,
            }
            | self.settings
        )
        started_s = time.monotonic()
        total = 0
        while not self._stopping.is_set():
            due = int((time.monotonic() - started_s) * self.rate)
            while total < due:
                partition = total % self.partitions
                number = self.sent[partition]
                producer.produce(
                    self.topic, value(partition, number), partition=partition, on_delivery=self._reported(number)
                )
                self.sent[partition] = number + 1
                total += 1
            producer.poll(0.001)
        if self._abandoned:
            producer.purge()
        self._unsent = producer.flush(120.0)

    def _reported(self, number: int) -> Any:
        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self.acks.append(Ack(message.partition(), number, message.offset(), time.monotonic()))
            else:
                self.errors.append(f"partition {message.partition()}, record {number}: {error}")

        return delivered


def read_to_end(cluster: Cluster, topic: str, partitions: int) -> list[Any]:
    """Every committed record of every partition, as librdkafka's messages."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        client_settings(cluster)
        | {
            "group.id": "reads-to-the-end",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    found: list[Any] = []
    ended: set[int] = set()

    def all_ended() -> bool:
        for message in consumer.consume(1000, timeout=1.0):
            if message.error() is None:
                found.append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
        return len(ended) == partitions

    try:
        wait_for(all_ended, f"the end of all partitions of {topic}", timeout_s=READ_TIMEOUT_S)
    finally:
        consumer.close()
    return found


def read_all(cluster: Cluster, topic: str, partitions: int) -> dict[int, list[Stored]]:
    """The numbers of a load's records, by partition."""
    log: dict[int, list[Stored]] = {partition: [] for partition in range(partitions)}
    for message in read_to_end(cluster, topic, partitions):
        partition = message.partition()
        log[partition].append(Stored(message.offset(), number_of(message.value(), partition)))
    return log
