"""The transactional load with tanist's own client: an epoch for each transaction, one request in flight.

Its consumer is assigned all partitions. A client that cannot reach the cluster gives its transaction up, and begins
anew with the next one, which fences the last.
"""

from __future__ import annotations

import random
import time
from contextlib import closing

from tanist.lab.jepsen.own_client import back_from, value_of
from tanist.lab.jepsen.plan import REQUEST_PATIENCE_S, SEND_PATIENCE_S, Plan, SharedHistory, Stopping
from tanist.lab.jepsen.transactions import POLL, TIMEOUT_MS, Drawn, Noted, Pace, assigned, crashed, draw
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.records import fetch
from tanist.runtime.client.transactional import TransactionalProducer
from tanist.wire.batch import NewRecord
from tanist.wire.errors import ErrorCode

_REPLICAS_PATIENCE_MS = 2000
_FETCH_WAIT_MS = 20
_TROUBLE = (KafkaError, Unreachable, Unsupported)


class _Crashed(Exception):
    """The client stops here, as it was drawn."""


def work(plan: Plan, history: SharedHistory, stopping: Stopping) -> None:
    """One client in this thread."""
    transactor = _Transactor(plan, history)
    pace, turn = Pace(plan.rate), 0
    while not stopping.is_set():
        with closing(plan.connect(turn, SEND_PATIENCE_S)) as client:
            try:
                while not stopping.wait(pace.wait_s()):
                    pace.takes(transactor.transact(client))
            except (*_TROUBLE, _Crashed):
                turn += 1
        transactor.begin_anew()
        stopping.wait(0.1)


class _Transactor:
    """The part of a client that outlives its connections: what it has sent and read."""

    def __init__(self, plan: Plan, history: SharedHistory) -> None:
        self._plan = plan
        self._history = history
        self._rng = random.Random(f"{plan.seed}/{plan.name}")
        self._number = 0
        self._positions = dict.fromkeys(range(plan.partitions), 0)
        assigned(plan, history, self._positions)

    def begin_anew(self) -> None:
        """Another client under the same name."""
        crashed(self._plan, self._history)
        assigned(self._plan, self._history, self._positions)

    def transact(self, client: Client) -> int:
        """One transaction; gives the number of its records. Raises if the client has to begin anew."""
        drawn = draw(self._rng, self._plan.partitions)
        noted = Noted(self._plan, self._history, drawn, self._number)
        self._number += len(noted.values)
        producer = TransactionalProducer(client, self._plan.name, timeout_ms=TIMEOUT_MS)
        try:
            if noted.values:
                producer.initialize()
            self._take_steps(client, producer, drawn, noted)
            if drawn.crashes:
                raise _Crashed("it stops before the end")
            if not drawn.aborts:
                noted.commits()
            # A transaction that has sent nothing is none for the coordinator.
            if noted.values:
                producer.end(committed=not drawn.aborts)
        except (*_TROUBLE, _Crashed) as error:
            noted.given_up(str(error))
            raise
        if drawn.aborts:
            noted.aborted("on purpose")
        else:
            noted.committed()
        return max(1, len(noted.values))

    def _take_steps(self, client: Client, producer: TransactionalProducer, drawn: Drawn, noted: Noted) -> None:
        values = iter(noted.values)
        places = sorted({step for step in drawn.steps if step != POLL})
        if places:
            producer.add_partitions([(self._plan.topic, partition) for partition in places])
        for step in drawn.steps:
            if step == POLL:
                self._poll(client, noted)
                continue
            op = noted.sends()
            offset = producer.write(
                self._plan.topic,
                step,
                [NewRecord(time.time_ns() // 1_000_000, None, next(values).encode())],
                request_timeout_ms=_REPLICAS_PATIENCE_MS,
                answer_within_s=REQUEST_PATIENCE_S,
            )
            if offset >= 0:
                op["offset"] = offset

    def _poll(self, client: Client, noted: Noted) -> None:
        """From some partition, what there is."""
        plan, partition = self._plan, self._rng.randrange(self._plan.partitions)
        began_ns = time.monotonic_ns()
        try:
            found = fetch(
                client,
                plan.topic,
                partition,
                self._positions[partition],
                max_wait_ms=_FETCH_WAIT_MS,
                answer_within_s=REQUEST_PATIENCE_S,
                read_committed=plan.isolation == "read_committed",
            )
        except KafkaError as error:
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                # The log ends before the reader's position: an unclean election has cut it.
                self._positions[partition] = back_from(self._positions[partition], self._rng)
            raise
        self._positions[partition] = found.next_offset
        pairs = [(record.offset, value_of(record.value)) for record in found.records]
        noted.polled({plan.partition_name(partition): pairs} if pairs else {}, began_ns)
