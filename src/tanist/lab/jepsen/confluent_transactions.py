"""The transactional load with confluent-kafka (librdkafka): a producer and a consumer for each process.

Clients with an odd number are assigned all partitions; the others are members of one group, and commit its offsets in
their transactions. After a fatal error, or one that does not pass, a client begins anew under the same transactional
id, which fences the last; what it had asked for has an unknown outcome.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from tanist.lab.jepsen.confluent_settings import of_librdkafka
from tanist.lab.jepsen.own_client import back_from, value_of
from tanist.lab.jepsen.plan import SEND_PATIENCE_S, Plan, SharedHistory, Stopping
from tanist.lab.jepsen.transactions import (
    BATCH_MAX,
    POLL,
    POLL_S,
    TIMEOUT_MS,
    Drawn,
    Noted,
    Pace,
    assigned,
    crashed,
    draw,
)
from tanist.runtime.client.client import format_bootstrap

_COMMON = {"topic.metadata.refresh.interval.ms": 1000, "socket.timeout.ms": 5000, "log_level": 0}
_CALL_S = 5.0
_PATIENCE_S = 20.0
_RETRY_S = 0.1


class _Gone(Exception):
    """This client is done for."""


class _Aborted(Exception):
    """The transaction has to be aborted."""


def work(plan: Plan, history: SharedHistory, stopping: Stopping) -> None:
    """One client after the other in this thread, under one name."""
    transactor = _Transactor(plan, history, stopping)
    pace = Pace(plan.rate)
    while not stopping.is_set():
        try:
            transactor.begin()
            while not stopping.wait(pace.wait_s()):
                pace.takes(transactor.transact())
        except _Gone:
            transactor.stop()
            stopping.wait(_RETRY_S)
    transactor.close()


class _Transactor:
    def __init__(self, plan: Plan, history: SharedHistory, stopping: Stopping) -> None:
        self._plan = plan
        self._history = history
        self._stopping = stopping
        self._rng = random.Random(f"{plan.seed}/{plan.name}")
        self._in_group = int(plan.name.lstrip("t")) % 2 == 0
        self._names = {partition: plan.partition_name(partition) for partition in range(plan.partitions)}
        self._positions = dict.fromkeys(self._names, 0)
        self._number = 0
        self._rebalanced = False
        self._cut: set[int] = set()
        """Partitions whose log ends before the consumer's position."""
        self._producer: Any = None
        self._consumer: Any = None

    # -- a client

    def begin(self) -> None:
        from confluent_kafka import Consumer, Producer

        plan = self._plan
        common = (
            {"bootstrap.servers": format_bootstrap(plan.addresses), "client.id": plan.name}
            | _COMMON
            | of_librdkafka(plan.properties)
        )
        self._producer = Producer(
            common
            | {
                "transactional.id": f"{plan.topic}-{plan.name}",
                "transaction.timeout.ms": TIMEOUT_MS,
                "delivery.timeout.ms": round(SEND_PATIENCE_S * 1000),
                "linger.ms": 0,
            }
        )
        self._consumer = Consumer(
            common
            | {
                "group.id": f"{plan.topic}-group" if self._in_group else f"{plan.topic}-{plan.name}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest" if self._in_group else "error",
                "isolation.level": plan.isolation,
                "session.timeout.ms": 10_000,
            }
        )
        self._persist(lambda: self._producer.init_transactions(_CALL_S))
        if self._in_group:
            moved = self._moved
            self._consumer.subscribe([plan.topic], on_assign=moved, on_revoke=moved, on_lost=moved)
            with self._history as lines:
                lines.complete(plan.name, "subscribe", "ok", time.monotonic_ns(), topics=[plan.topic])
        else:
            self._assign()

    def stop(self) -> None:
        """It stops as it is: its transaction stays open until the next client of its name begins."""
        if self._producer is not None:
            self._producer.purge()
        if self._consumer is not None:
            self._consumer.close()
        self._producer = self._consumer = None
        crashed(self._plan, self._history)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def _moved(self, *_: Any) -> None:
        self._rebalanced = True

    def _assign(self) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.assign(
            [TopicPartition(self._plan.topic, each, position) for each, position in self._positions.items()]
        )
        assigned(self._plan, self._history, self._positions)

    # -- a transaction

    def transact(self) -> int:
        """One transaction; gives the number of its records."""
        if self._cut:
            for partition in self._cut:
                self._positions[partition] = back_from(self._positions[partition], self._rng)
            self._cut.clear()
            self._assign()
        drawn = draw(self._rng, self._plan.partitions)
        noted = Noted(self._plan, self._history, drawn, self._number)
        self._number += len(noted.values)
        try:
            self._carry_out(drawn, noted)
        except _Aborted as error:
            try:
                self._persist(lambda: self._producer.abort_transaction(_CALL_S))
            except (_Gone, _Aborted) as failed:
                noted.given_up(f"{error}; {failed}")
                raise _Gone(str(failed)) from failed
            noted.aborted(str(error))
        except _Gone as error:
            noted.given_up(str(error))
            raise
        else:
            noted.committed()
        return max(1, len(noted.values))

    def _carry_out(self, drawn: Drawn, noted: Noted) -> None:
        from confluent_kafka import KafkaException

        values = iter(noted.values)
        self._persist(self._producer.begin_transaction)
        for step in drawn.steps:
            if step == POLL:
                self._poll(noted)
                continue
            try:
                self._producer.produce(
                    self._plan.topic, next(values).encode(), partition=step, on_delivery=_noting(noted.sends())
                )
            except KafkaException as error:
                raise _kind(error) from error
        if drawn.crashes:
            raise _Gone("it stops before the end")
        if self._in_group and not drawn.aborts:
            self._send_offsets()
        # The records of an aborted transaction are in the log, too: an abort would purge those that wait.
        if self._persist(lambda: self._producer.flush(_PATIENCE_S)):
            raise _Gone("records wait for too long")
        if drawn.aborts:
            raise _Aborted("on purpose")
        noted.commits()
        self._persist(lambda: self._producer.commit_transaction(_CALL_S))

    def _send_offsets(self) -> None:
        assigned = self._consumer.assignment()
        places = [each for each in self._consumer.position(assigned) if each.offset >= 0] if assigned else []
        if places:
            group = self._consumer.consumer_group_metadata()
            self._persist(lambda: self._producer.send_offsets_to_transaction(places, group, _CALL_S))

    def _poll(self, noted: Noted) -> None:
        """A batch. What the group moves within it divides it."""
        from confluent_kafka import KafkaError as Code

        cut = {Code._AUTO_OFFSET_RESET, Code.OFFSET_OUT_OF_RANGE, getattr(Code, "_LOG_TRUNCATION", None)}
        records: dict[str, list[tuple[int, str]]] = {}
        began_ns = time.monotonic_ns()
        moved = False
        for taken in range(BATCH_MAX):
            self._rebalanced = False
            message = self._consumer.poll(0.0 if taken else POLL_S)
            if self._rebalanced:
                noted.polled(records, began_ns, rebalanced=moved)
                records, began_ns, moved = {}, time.monotonic_ns(), True
            if message is None:
                break
            partition = message.partition()
            if message.error() is None:
                records.setdefault(self._names[partition], []).append((message.offset(), value_of(message.value())))
                self._positions[partition] = message.offset() + 1
            elif message.error().code() in cut and partition in self._names and not self._in_group:
                self._cut.add(partition)
        noted.polled(records, began_ns, rebalanced=moved)

    def _persist(self, call: Callable[[], Any]) -> Any:
        """Again, as long as this may help."""
        from confluent_kafka import KafkaException

        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return call()
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline_s:
                    raise _kind(error) from error
                self._stopping.wait(_RETRY_S)


def _noting(op: dict[str, Any]) -> Callable[[Any, Any], None]:
    """Notes the offset of a record that is delivered."""

    def delivered(error: Any, message: Any) -> None:
        offset = None if error is not None else message.offset()
        if offset is not None and offset >= 0:
            op["offset"] = offset

    return delivered


def _kind(error: Any) -> Exception:
    """What has to be done about a KafkaException."""
    found = error.args[0]
    return _Aborted(found.name()) if found.txn_requires_abort() else _Gone(found.name())
