"""The clients of the story: producers, plain and transactional, and a reader of committed records. They note it all.

Owns the load and its history. Whatever it writes, it waits for: a batch until it is acknowledged, a marker until it is
below the high watermark. So it knows each offset that the topic should have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TextIO

from tanist.client.positions import EARLIEST, LATEST
from tanist.lab.history import HistoryWriter
from tanist.runtime.client import admin
from tanist.runtime.client.admin import PartitionDescription
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable
from tanist.runtime.client.records import Producer, list_offset, read
from tanist.runtime.client.transactional import TransactionalProducer
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.processes import wait_until
from tanist.wire.batch import NewRecord

TOPIC: Final = "orders"
PARTITIONS: Final = 2
TRANSACTION: Final = 20
"""Records of a transaction in each partition."""
_BATCH: Final = 20
_PATIENCE_S: Final = 60.0
_TIMEOUT_MS: Final = 900_000
"""No transaction is aborted for its age."""


class StoryFailed(AssertionError):
    """The result is not the expected one."""


def require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise StoryFailed(otherwise)


class StoryClients:
    """One producer and one consumer for each partition, and a transactional producer for all of them."""

    def __init__(self, data: Path, file: TextIO) -> None:
        self.addresses: list[Address] = addresses_of(load_existing(data), data)
        self.acknowledged: set[str] = set()
        """Values that were acknowledged, and those of committed transactions."""
        self._file = file
        self._writer = HistoryWriter(file)
        self._sent = dict.fromkeys(range(PARTITIONS), 0)
        self._open: list[str] = []
        """Transactional ids."""

    def flush(self) -> None:
        """The notes so far are in the file."""
        self._file.flush()

    def client(self) -> Client:
        return Client(self.addresses, timeout_s=_PATIENCE_S)

    def send(self, count: int) -> None:
        """So many records to each partition; each batch is acknowledged before the next."""
        with self.client() as client:
            producer = Producer(client)
            for partition in range(PARTITIONS):
                for first in range(0, count, _BATCH):
                    self._send_batch(producer, partition, min(_BATCH, count - first))

    def _send_batch(self, producer: Producer, partition: int, count: int) -> None:
        values = self._values(partition, count)
        # By the clock of the day, as controllers have it, so that the report can show both on one axis.
        began_ns = time.time_ns()
        offset = producer.send(TOPIC, partition, _records(values, began_ns))
        self._note("ok", f"producer-{partition}", partition, values, offset, began_ns)
        self.acknowledged.update(values)

    def _values(self, partition: int, count: int) -> list[str]:
        first = self._sent[partition]
        self._sent[partition] += count
        return [f"{TOPIC}-{partition}/{first + number}" for number in range(count)]

    def transactions(self, name: str) -> None:
        """Three in all partitions: one is committed, one aborted, and one stays open."""
        with self.client() as client:
            for outcome in ("committed", "aborted", "open"):
                self._transaction(client, f"{name}-{outcome}", outcome)

    def _transaction(self, client: Client, transactional_id: str, outcome: str) -> None:
        producer = TransactionalProducer(client, transactional_id, timeout_ms=_TIMEOUT_MS)
        producer.initialize()
        producer.add_partitions([(TOPIC, partition) for partition in range(PARTITIONS)])
        written = []
        for partition in range(PARTITIONS):
            values, began_ns = self._values(partition, TRANSACTION), time.time_ns()
            offset = producer.write(TOPIC, partition, _records(values, began_ns))
            require(offset >= 0, f"nobody says where the batch in {TOPIC}-{partition} is")
            written.append((partition, values, offset, began_ns))
        if outcome == "open":
            self._open.append(transactional_id)
        else:
            producer.end(committed=outcome == "committed")
        for partition, values, offset, began_ns in written:
            kind = {"committed": "ok", "aborted": "fail", "open": "info"}[outcome]
            self._note(kind, transactional_id, partition, values, offset, began_ns)
            if outcome != "open":
                marked = offset + TRANSACTION + 1
                _await_end(client, partition, marked)
            if outcome == "committed":
                self.acknowledged.update(values)

    def end_what_is_open(self) -> None:
        """Abort the transactions that are open still, and wait until every partition has its markers.

        If the coordinator does not know a transaction any more, the partition's leader ends it.
        """
        with self.client() as client:
            for transactional_id in self._open:
                TransactionalProducer(client, transactional_id, timeout_ms=_TIMEOUT_MS).initialize()

            def all_ended() -> bool:
                return all(
                    list_offset(client, TOPIC, partition, LATEST, read_committed=True)
                    == list_offset(client, TOPIC, partition, LATEST)
                    for partition in range(PARTITIONS)
                )

            require(wait_until(all_ended, _PATIENCE_S), "a transaction stays open")

    def _note(self, kind: str, process: str, partition: int, values: Sequence[str], offset: int, began_ns: int) -> None:
        ended_ns = time.time_ns()
        for number, value in enumerate(values):
            self._writer.write({
                "process": process, "type": kind, "f": "send", "partition": f"{TOPIC}-{partition}", "value": value,
                "offset": offset + number if kind == "ok" else None, "aborted": True if kind == "fail" else None,
                "invoked_ns": began_ns, "time_ns": ended_ns,
            })  # fmt: skip

    def drain(self) -> list[str]:
        """Everything that a reader of committed records gets."""
        found: list[str] = []
        with self.client() as client:
            for partition in range(PARTITIONS):
                start = list_offset(client, TOPIC, partition, EARLIEST)
                end = list_offset(client, TOPIC, partition, LATEST, read_committed=True)
                records = [
                    (record.offset, (record.value or b"").decode())
                    for record in read(client, TOPIC, partition, start, end, read_committed=True)
                ]
                self._writer.poll(
                    "consumer", f"{TOPIC}-{partition}", records, time.time_ns(), isolation="read_committed"
                )
                found.extend(value for _, value in records)
        return found

    def await_isr(self, isr: Sequence[int]) -> None:
        """Until each of these brokers says that they are the ISR, and that one of them leads."""
        wanted = set(isr)

        def all_say_so() -> bool:
            return all(
                self._says(broker, lambda found: set(found.isr) == wanted and found.leader in wanted) for broker in isr
            )

        require(wait_until(all_say_so, _PATIENCE_S), f"the ISR is not {wanted} after {_PATIENCE_S:.0f} s")

    def _says(self, broker: int, condition: Callable[[PartitionDescription], bool]) -> bool:
        try:
            with Client([self.addresses[broker - 1]], timeout_s=5.0) as client:
                (found,) = admin.describe_topics(client, [TOPIC])
        except (KafkaError, Unreachable):
            return False
        return all(condition(partition) for partition in found.partitions)


def _records(values: Sequence[str], began_ns: int) -> list[NewRecord]:
    return [NewRecord(began_ns // 1_000_000, None, value.encode()) for value in values]


def _await_end(client: Client, partition: int, end: int) -> None:
    reached = wait_until(lambda: list_offset(client, TOPIC, partition, LATEST) >= end, _PATIENCE_S)
    require(reached, f"{TOPIC}-{partition} has no marker at offset {end - 1}")
