"""The load with confluent-kafka (librdkafka), if it is installed: one producer and one consumer for each process.

Some settings differ from the library's defaults, because by default it trusts an isolated leader for minutes
(docs/faults.md). They change the duration of a fault's effect, not the losses.
"""

from __future__ import annotations

import random
import time
from typing import Any

from tanist.lab.jepsen.confluent_settings import of_librdkafka
from tanist.lab.jepsen.own_client import back_from, value_of
from tanist.lab.jepsen.plan import (
    REQUEST_PATIENCE_S,
    REWIND_EVERY_S,
    SEND_PATIENCE_S,
    Plan,
    SharedHistory,
    Stopping,
)
from tanist.runtime.client.client import format_bootstrap

_BATCH_MAX = 500
_COMMON = {"topic.metadata.refresh.interval.ms": 1000, "socket.timeout.ms": 5000, "log_level": 0}
_PRODUCER = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 0,
    "request.timeout.ms": round(REQUEST_PATIENCE_S * 1000),
    "delivery.timeout.ms": round(SEND_PATIENCE_S * 1000),
}
_CONSUMER = {
    "enable.auto.commit": False,
    # A consumer that changes its position must note it in the history, so it is done here, not by the library.
    "auto.offset.reset": "error",
}


def work(plan: Plan, history: SharedHistory, stopping: Stopping) -> None:
    """One client in this thread."""
    common = (
        {"bootstrap.servers": format_bootstrap(plan.addresses), "client.id": plan.name}
        | _COMMON
        | of_librdkafka(plan.properties)
    )
    if plan.role == "writer":
        _write(plan, common, history, stopping)
    else:
        _read(plan, common, history, stopping)


def _write(plan: Plan, common: dict[str, Any], history: SharedHistory, stopping: Stopping) -> None:
    from confluent_kafka import KafkaException, Producer

    every_s = 1.0 / plan.rate
    due_s = time.monotonic()
    number, generation, fatal = 0, 0, False

    def note(error: Any) -> None:
        nonlocal fatal
        fatal = fatal or error.fatal()

    settings = common | _PRODUCER | {"error_cb": note}
    producer = Producer(settings)

    def delivery_callback(process: str, sent: int) -> Any:
        def tell(error: Any, message: Any) -> None:
            with history as lines:
                if error is None:
                    offset = message.offset()
                    known = offset if offset is not None and offset >= 0 else None
                    lines.complete(process, "send", "ok", time.monotonic_ns(), id=sent, offset=known)
                else:
                    note(error)
                    lines.complete(process, "send", "info", time.monotonic_ns(), id=sent, error=str(error))

        return tell

    while not stopping.is_set():
        try:
            producer.poll(max(0.0, min(0.1, due_s - time.monotonic())))
        except KafkaException as error:
            note(error.args[0])
        if time.monotonic() < due_s:
            continue
        due_s = max(due_s + every_s, time.monotonic() - 1.0)
        process, partition = f"{plan.name}/{generation}", number % plan.partitions
        value = f"{plan.name}/{number}"
        with history as lines:
            lines.invoke(
                process, "send", time.monotonic_ns(), partition=plan.partition_name(partition), value=value, id=number
            )
        try:
            producer.produce(
                plan.topic, value.encode(), partition=partition, on_delivery=delivery_callback(process, number)
            )
        except (KafkaException, BufferError) as error:
            # The record has not been queued.
            with history as lines:
                lines.complete(process, "send", "fail", time.monotonic_ns(), id=number, error=str(error))
            fatal = fatal or isinstance(error, KafkaException)
        number += 1
        if fatal:
            # An idempotent producer stops after a sequence error (an unclean election has cut the log).
            producer.purge()
            _flush(producer)
            producer, fatal, generation = Producer(settings), False, generation + 1
    _flush(producer)


def _flush(producer: Any) -> None:
    """Wait until every record has its outcome. If the producer fails, its open records stay unknown."""
    from confluent_kafka import KafkaException

    try:
        producer.flush(SEND_PATIENCE_S * 2)
    except KafkaException as error:
        if not error.args[0].fatal():
            raise


def _read(plan: Plan, common: dict[str, Any], history: SharedHistory, stopping: Stopping) -> None:
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka import KafkaError as Code

    moved = {Code._AUTO_OFFSET_RESET, Code.OFFSET_OUT_OF_RANGE, getattr(Code, "_LOG_TRUNCATION", None)}
    rng = random.Random(f"{plan.seed}/{plan.name}")
    consumer = Consumer(common | _CONSUMER | {"group.id": plan.name})
    names = {partition: plan.partition_name(partition) for partition in range(plan.partitions)}
    positions = dict.fromkeys(names, 0)
    consumer.assign([TopicPartition(plan.topic, partition, 0) for partition in names])
    with history as lines:
        start = {names[partition]: 0 for partition in names}
        lines.complete(plan.name, "assign", "ok", time.monotonic_ns(), partitions=list(start), positions=start)

    def move(partition: int) -> None:
        positions[partition] = back_from(positions[partition], rng)
        # Assigned again, because `seek` may be refused while the library recovers from an error.
        consumer.incremental_unassign([TopicPartition(plan.topic, partition)])
        consumer.incremental_assign([TopicPartition(plan.topic, partition, positions[partition])])
        with history as lines:
            to = {names[partition]: positions[partition]}
            lines.complete(plan.name, "seek", "ok", time.monotonic_ns(), positions=to)

    rewind_s = time.monotonic() + rng.uniform(*REWIND_EVERY_S)
    while not stopping.is_set():
        if time.monotonic() > rewind_s:
            rewind_s = time.monotonic() + rng.uniform(*REWIND_EVERY_S)
            move(rng.randrange(plan.partitions))
        began_ns = time.monotonic_ns()
        records: dict[str, list[tuple[int, str]]] = {}
        lost: set[int] = set()
        for taken in range(_BATCH_MAX):
            message = consumer.poll(0.0 if taken else 0.2)
            if message is None:
                break
            partition = message.partition()
            if message.error() is None:
                records.setdefault(names[partition], []).append((message.offset(), value_of(message.value())))
                positions[partition] = message.offset() + 1
            elif message.error().code() in moved and partition in names:
                lost.add(partition)
        if records:
            with history as lines:
                lines.complete(plan.name, "poll", "ok", time.monotonic_ns(), records=records, invoked_ns=began_ns)
        for partition in lost:
            move(partition)
    consumer.close()
