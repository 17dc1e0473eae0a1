"""The balance of a micro-batch that was run again: what its tasks left out, against what an earlier run had written.

A task leaves out each row that looks like one that an earlier run wrote, and tells which. Mostly the sums agree. If
more rows were left out than had been written, then there are equal rows of which not all had come so far: the rest are
written here, on the driver, as a producer of its own, copied from those in the log. If fewer, then the micro-batch has
other rows than before, and the query ends. Nothing is asked of the cluster unless an earlier run has written something.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Client
from tanist.spark.segments.arrow_rows import HEADERS
from tanist.spark.sink.already_written import DRIVER_TASK, ReadBack, other_rows, read_back, tally
from tanist.spark.sink.encoding import Rows, Sealing, encode, seal
from tanist.spark.sink.producer import TaskProducer
from tanist.spark.sink.written import TaskWritten
from tanist.wire.batch import Record, decode_batch


def write_missing(client: Client, messages: Sequence[TaskWritten], compression: int) -> int:
    """Write what is missing, and say how much that was."""
    written_by_tasks = [each for each in messages if each.who is not None and each.earlier]
    if not written_by_tasks or written_by_tasks[0].who is None:
        return 0
    driver = written_by_tasks[0].who.of_task(DRIVER_TASK)
    missing: dict[TopicPartition, list[Record]] = {}
    for where, written in sorted(written_by_tasks[0].earlier.items()):
        read = read_back(client, where, written, driver.producer_epoch)
        there, counts = tally(read)
        left_out = b"".join(each.left_out.get(where, b"") for each in written_by_tasks)
        rows, row_counts = np.unique(np.frombuffer(left_out, np.uint64), return_counts=True)
        # Tasks leave out nothing but what is there.
        balance = -counts
        balance[np.searchsorted(there, rows)] += row_counts
        if (balance < 0).any():
            raise other_rows(where, int(-balance[balance < 0].sum()))
        if (balance > 0).any():
            missing[where] = _copies(read, dict(zip(there.tolist(), balance.tolist())))
    if not missing:
        return 0
    producer = TaskProducer(client, driver.producer_id, driver.producer_epoch)
    try:
        for where, records in missing.items():
            earlier = written_by_tasks[0].earlier[where].get(driver.producer_id)
            producer.sequences.continue_at(where, 0 if earlier is None else earlier[1] + 1)
            _write(producer, where, records, compression)
        producer.flush()
    finally:
        producer.close()
    return sum(map(len, missing.values()))


def _copies(read: Sequence[ReadBack], wanted: dict[int, int]) -> list[Record]:
    copies: list[Record] = []
    for each in read:
        if not any(wanted.get(fingerprint, 0) for fingerprint in each.fingerprints.tolist()):
            continue
        batch = seal(each.records, each.count, Sealing(-1, -1, -1), timestamp_ms=0, compression=0).joined()
        records = decode_batch(batch)
        for number, fingerprint in zip(each.kept.tolist(), each.fingerprints.tolist()):
            copies += [records[number]] * wanted.pop(fingerprint, 0)
    return copies


def _write(producer: TaskProducer, where: TopicPartition, records: Sequence[Record], compression: int) -> None:
    # Equal rows are few: one record to a batch keeps each as small as what it was copied from.
    for each in records:
        headers: Any = None
        if each.headers:
            headers = pa.array([[{"key": key, "value": value} for key, value in each.headers]], HEADERS)
        rows = Rows(pa.array([each.key], pa.binary()), pa.array([each.value], pa.binary()), headers)
        now_ms = time.time_ns() // 1_000_000
        encoded = encode(rows, np.zeros(1, np.int64)).cut(0, 1)
        producer.send(where, seal(encoded, 1, producer.sealing(where), timestamp_ms=now_ms, compression=compression))
