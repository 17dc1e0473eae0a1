"""A transactional producer that goes on through a roll, and what a consumer of committed records finds in the end."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from tests.interop.cluster import Cluster, wait_in_sync
from tests.interop.waiting import wait_for

TOPIC = "settled"
PARTITIONS = 3
RECORDS = 6
"""In each transaction, over all partitions."""
ABORTED_EACH = 5
_PAUSE_S = 0.1
_PATIENCE_S = 60.0


def create_settled(cluster: Cluster) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    config = {"min.insync.replicas": "2"}
    (future,) = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, config=config)]).values()
    future.result(30)
    wait_in_sync(cluster, TOPIC)


@dataclass(slots=True)
class Transactions:
    """One producer, one transaction after the other; every fifth is aborted."""

    cluster: Cluster
    committed: list[int] = field(default_factory=list)
    aborted: list[int] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _failure: BaseException | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="transactions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(3 * _PATIENCE_S)
        if self._failure is not None:
            raise RuntimeError("the transactional producer failed") from self._failure

    def _run(self) -> None:
        try:
            self._produce()
        except BaseException as error:
            self._failure = error

    def _produce(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "transactional.id": "settling"})
        producer.init_transactions(_PATIENCE_S)
        number = 0
        while not self._stopping.wait(_PAUSE_S):
            producer.begin_transaction()
            numbers = range(number, number + RECORDS)
            for each in numbers:
                producer.produce(TOPIC, b"%d" % each, partition=each % PARTITIONS)
            number += RECORDS
            abort = number // RECORDS % ABORTED_EACH == 0
            (self.committed if self._end(producer, abort) else self.aborted).extend(numbers)

    @staticmethod
    def _end(producer: Any, abort: bool) -> bool:
        """End the transaction; whether it is committed. An error says whether to ask again, or to abort."""
        from confluent_kafka import KafkaException

        while True:
            try:
                (producer.abort_transaction if abort else producer.commit_transaction)(_PATIENCE_S)
                return not abort
            except KafkaException as error:
                why = error.args[0]
                if why.txn_requires_abort():
                    abort = True
                elif not why.retriable():
                    raise

    def read(self) -> list[int]:
        """All that a consumer of committed records gets."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "settled",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
        found: list[int] = []
        ended: set[int] = set()

        def all_ended() -> bool:
            for message in consumer.consume(1000, timeout=1.0):
                if message.error() is None:
                    found.append(int(message.value()))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
            return len(ended) == PARTITIONS

        try:
            wait_for(all_ended, f"the end of all partitions of {TOPIC}", timeout_s=_PATIENCE_S)
        finally:
            consumer.close()
        return found
