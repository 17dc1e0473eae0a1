"""The load with tanist's own client: a producer and a consumer for each partition, one request in flight each.

Writers log a record before they send it. A record without an acknowledgement in time has an unknown outcome, and its
producer is replaced: another client, which asks another broker first and has another name in the history, because the
open record may land behind later ones.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import closing

from tanist.lab.jepsen.plan import (
    REQUEST_PATIENCE_S,
    REWIND_EVERY_S,
    REWIND_RECORDS_MAX,
    SEND_PATIENCE_S,
    Plan,
    SharedHistory,
    Stopping,
)
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.records import Producer, fetch
from tanist.wire.batch import NewRecord
from tanist.wire.errors import ErrorCode

_REPLICAS_PATIENCE_MS = 2000
"""Time that a leader may wait for its followers: less than the request timeout."""
_FETCH_WAIT_MS = 200
_TROUBLE = (KafkaError, Unreachable, Unsupported)


def work(plan: Plan, history: SharedHistory, stopping: Stopping) -> None:
    """A thread for each partition; raises an exception of any of them."""
    failures: list[BaseException] = []
    job = _write if plan.role == "writer" else _read

    def run(partition: int) -> None:
        try:
            job(plan, partition, history, stopping)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(partition,), daemon=True) for partition in range(plan.partitions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _write(plan: Plan, partition: int, history: SharedHistory, stopping: Stopping) -> None:
    every_s = plan.partitions / plan.rate
    due_s = time.monotonic() + every_s * random.Random(f"{plan.seed}/{plan.name}/{partition}").random()
    number, generation = 0, 0
    client, producer = _producer(plan, generation)
    name = plan.partition_name(partition)
    while not stopping.wait(max(0.0, due_s - time.monotonic())):
        # After a pause it continues at its rate, and does not catch up.
        due_s = max(due_s + every_s, time.monotonic())
        process = f"{plan.name}/{partition}/{generation}"
        value = f"{plan.name}/{number}"
        number += 1
        with history as lines:
            lines.invoke(process, "send", time.monotonic_ns(), partition=name, value=value)
        record = NewRecord(time.time_ns() // 1_000_000, None, value.encode())
        try:
            offset = producer.send(plan.topic, partition, [record], timeout_s=SEND_PATIENCE_S)
        except _TROUBLE as error:
            with history as lines:
                lines.complete(process, "send", "info", time.monotonic_ns(), error=str(error))
            client.close()
            generation += 1
            client, producer = _producer(plan, generation)
        else:
            with history as lines:
                lines.complete(process, "send", "ok", time.monotonic_ns(), offset=offset if offset >= 0 else None)
    client.close()


def _producer(plan: Plan, generation: int) -> tuple[Client, Producer]:
    client = plan.connect(generation, REQUEST_PATIENCE_S)
    return client, Producer(client, request_timeout_ms=_REPLICAS_PATIENCE_MS)


def _read(plan: Plan, partition: int, history: SharedHistory, stopping: Stopping) -> None:
    rng = random.Random(f"{plan.seed}/{plan.name}/{partition}")
    process, name = f"{plan.name}/{partition}", plan.partition_name(partition)
    position, trouble = 0, 0
    with history as lines:
        lines.complete(process, "assign", "ok", time.monotonic_ns(), partitions=[name], positions={name: 0})

    def move(to: int) -> int:
        with history as lines:
            lines.complete(process, "seek", "ok", time.monotonic_ns(), positions={name: to})
        return to

    rewind_s = time.monotonic() + rng.uniform(*REWIND_EVERY_S)
    while not stopping.is_set():
        with closing(plan.connect(trouble, REQUEST_PATIENCE_S)) as it:
            try:
                while not stopping.is_set():
                    if time.monotonic() > rewind_s:
                        rewind_s = time.monotonic() + rng.uniform(*REWIND_EVERY_S)
                        position = move(back_from(position, rng))
                    position = _poll(it, plan, partition, position, history, process, name)
            except KafkaError as error:
                trouble += 1
                if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    # The log ends before the reader's position: an unclean election has cut it.
                    position = move(back_from(position, rng))
            except (Unreachable, Unsupported):
                trouble += 1
        stopping.wait(0.1)


def _poll(
    client: Client, plan: Plan, partition: int, position: int, history: SharedHistory, process: str, name: str
) -> int:
    began_ns = time.monotonic_ns()
    found = fetch(client, plan.topic, partition, position, max_wait_ms=_FETCH_WAIT_MS, timeout_s=0.0)
    if found.records:
        with history as lines:
            lines.poll(
                process,
                name,
                [(record.offset, value_of(record.value)) for record in found.records],
                time.monotonic_ns(),
                invoked_ns=began_ns,
            )
    return found.next_offset


def back_from(position: int, rng: random.Random) -> int:
    """The new position of a reader that goes back."""
    return max(0, position - rng.randint(1, REWIND_RECORDS_MAX))


def value_of(value: bytes | memoryview | None) -> str:
    """The value for the history; a value that is not text is not of the test, and is reported as unexpected."""
    return "" if value is None else bytes(value).decode("utf-8", "backslashreplace")
