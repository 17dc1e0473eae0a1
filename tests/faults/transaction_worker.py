"""A process that reads, processes and writes exactly once, with librdkafka: the worker of `transaction_rounds`.

    python transaction_worker.py BOOTSTRAP NAME INPUT OUTPUT GROUP ABORT_SHARE

Each transaction takes what the group's member has polled, writes a record for each to the output, and commits the
offsets with the group's metadata (KIP-447). A record of the output has the place of its input as its key; its value
names the transaction and how many records that has. Some transactions are aborted on purpose. After any trouble the
worker aborts, goes back to what is committed, and goes on; after a fatal error with a new producer. SIGTERM ends it
between two transactions, with a line of counts. A transaction that takes minutes ends the process: librdkafka 2.16 can
wait for ever for a broker that it has purged because the metadata did not name it for a while.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

BATCH = 50
POLL_S = 0.2
PATIENCE_S = 20.0
RETRY_S = 0.2
HUNG_S = 90.0


class Fatal(Exception):
    """This producer is done for."""


class Aborted(Exception):
    """The transaction has to be aborted."""


class Worker:
    def __init__(self, bootstrap: str, name: str, source: str, target: str, group: str, abort_share: float) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "client.id": name}
        self._name, self._source, self._target = name, source, target
        self._abort_share = abort_share
        self._rng = random.Random(name)
        self._batch: list[Message] = []
        self._stopping = False
        self._incarnation = 0
        self._number = 0
        self.counts: Counter[str] = Counter()
        self._consumer = Consumer(
            {
                **self._settings,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 10_000,
            }
        )

    def stop(self, *_: Any) -> None:
        self._stopping = True

    def run(self) -> None:
        faulthandler.dump_traceback_later(HUNG_S, exit=True)
        self._consumer.subscribe([self._source], on_revoke=self._revoked, on_lost=self._revoked)
        try:
            while not self._stopping:
                try:
                    self._with_one_producer()
                except Fatal as error:
                    self.counts[f"producers given up: {error}"] += 1
        finally:
            self._consumer.close()

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Another member reads them from what is committed."""
        gone = {(each.topic, each.partition) for each in partitions}
        self._batch = [each for each in self._batch if (each.topic(), each.partition()) not in gone]

    def _with_one_producer(self) -> None:
        self._incarnation += 1
        producer = Producer({**self._settings, "transactional.id": self._name, "transaction.timeout.ms": 30_000})
        self._persist(lambda: producer.init_transactions(PATIENCE_S))
        self._rewind()  # only now the last producer's transaction has an outcome
        while not self._stopping:
            faulthandler.dump_traceback_later(HUNG_S, exit=True)
            self._poll()
            if not self._batch:
                continue
            try:
                self._transact(producer)
            except Aborted as error:
                self.counts[f"aborted: {error}"] += 1
                self._persist(lambda: producer.abort_transaction(PATIENCE_S))
                self._rewind()
            self._batch = []

    def _poll(self) -> None:
        deadline = time.monotonic() + POLL_S
        while len(self._batch) < BATCH and (left := deadline - time.monotonic()) > 0:
            message = self._consumer.poll(left)
            if message is not None and message.error() is None:
                self._batch.append(message)

    def _transact(self, producer: Producer) -> None:
        self._number += 1
        batch = self._batch
        tag = f"{self._name}/{os.getpid()}/{self._incarnation}/{self._number}"
        self._persist(producer.begin_transaction)
        offsets: dict[tuple[str, int], int] = {}
        try:
            for each in batch:
                offsets[each.topic(), each.partition()] = each.offset() + 1
                key = f"{each.partition()}/{each.offset()}"
                producer.produce(self._target, f"{tag} {len(batch)}".encode(), key.encode())
        except KafkaException as error:
            raise _kind(error) from error
        if self._rng.random() < self._abort_share:
            raise Aborted("on purpose")
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        group = self._consumer.consumer_group_metadata()
        self._persist(lambda: producer.send_offsets_to_transaction(places, group, PATIENCE_S))
        self._persist(lambda: producer.commit_transaction(PATIENCE_S))
        self.counts["committed"] += 1
        self.counts["records"] += len(batch)

    def _rewind(self) -> None:
        """To what the group has committed, once no transaction is open that may change it."""
        self._batch = []
        while not self._stopping:
            try:
                assigned = self._consumer.assignment()
                for each in self._consumer.committed(assigned, timeout=PATIENCE_S) if assigned else ():
                    if each.error is not None:
                        raise KafkaException(each.error)
                    offset = each.offset if each.offset >= 0 else OFFSET_BEGINNING
                    self._consumer.seek(TopicPartition(each.topic, each.partition, offset))
            except KafkaException:
                self._poll_nothing()
            else:
                return

    def _poll_nothing(self) -> None:
        """A member that does not poll leaves its group."""
        self._consumer.poll(RETRY_S)

    def _persist(self, call: Callable[[], Any]) -> None:
        """Again, as long as it says that this may help."""
        while True:
            try:
                call()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise _kind(error) from error
                self.counts["calls repeated"] += 1
                time.sleep(RETRY_S)
            else:
                return


def _kind(error: KafkaException) -> Exception:
    """What has to be done about an error."""
    found = error.args[0]
    return Aborted(found.name()) if found.txn_requires_abort() else Fatal(found.name())


def main(bootstrap: str, name: str, source: str, target: str, group: str, abort_share: str) -> None:
    worker = Worker(bootstrap, name, source, target, group, float(abort_share))
    signal.signal(signal.SIGTERM, worker.stop)
    worker.run()
    print(json.dumps(worker.counts), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
