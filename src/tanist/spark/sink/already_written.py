"""The records of a micro-batch that are in the topic already: how a streaming sink repeats a batch that was cut short.

Spark gives a query an id that outlives its runs, numbers its micro-batches, and gives the query the same rows when a
batch is run again; it may share them out among its tasks in another way. The sink makes of these the producers that the
tasks' records are sent by:

    producer id      from the query's id, and in its last 16 bits the task's number, above all ids that a cluster
                     hands out
    producer epoch   from the number of the micro-batch
    sequences        from 0 in each partition

So brokers know, and keep over restarts and elections, how many records of each task of this micro-batch are in a
partition: DescribeProducers tells the last sequences. The driver asks before a micro-batch's tasks begin: what is there
then, an earlier run has written (`Before`). Its records are read back from the end of the log, and a task leaves out
its rows that are among them, whichever task wrote them; `sink.missing_rows` draws up the balance when all have ended.
The task alone leaves out the records that an earlier attempt of the very same task has written since. A task of an
earlier micro-batch that lives on somewhere is refused by its epoch.

Records that were read back must be committed first: those that only an old leader had do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np

from tanist.client.positions import EARLIEST, LATEST
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.spark.segments.batch_table import walk
from tanist.spark.segments.fingerprints import PADDING_BYTES, fingerprints
from tanist.spark.segments.record_columns import decode
from tanist.spark.topic.fetching import Fetching
from tanist.spark.topic.offsets import by_leader, epoch_ends, list_offsets
from tanist.spark.topic.plan import OffsetRange
from tanist.wire.batch import COMPRESSION_MASK, HEADER_BYTES
from tanist.wire.compression import decompress
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from tanist.wire.messages.describe_producers_response import DescribeProducersResponse, ProducerState

_OWN_IDS: Final = 1 << 62
"""Clusters hand out producer ids from 0 on, a thousand at a time."""
_TASK_BITS: Final = 16
DRIVER_TASK: Final = (1 << _TASK_BITS) - 1
"""The number of the task that is none: what the driver writes when it draws up the balance."""
_EPOCHS: Final = 32_767
_FETCH_BYTES: Final = 8 << 20
_FIRST_STEP: Final = 1024
_STEP_GROWTH: Final = 4


class NotTheSame(RuntimeError):
    """A micro-batch that is written again has other rows than when it was written first."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The producer of one task of one micro-batch."""

    producer_id: int
    producer_epoch: int

    @property
    def query(self) -> int:
        """The prefix that the ids of all tasks of the query share."""
        return self.producer_id >> _TASK_BITS

    def of_task(self, task: int) -> Identity:
        return Identity(self.query << _TASK_BITS | task, self.producer_epoch)


Before = dict[TopicPartition, dict[int, tuple[int, int]]]
"""The sink's producers in each partition, by their ids: epoch and last sequence."""
Written = dict[int, tuple[int, int]]
"""First and last sequence of what is looked for, by producer id."""


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """The records that an earlier attempt of the task has written to a partition since the micro-batch began."""

    next_sequence: int
    fingerprints: Counter[int]


def identity(query_id: str, task: int, batch_id: int) -> Identity:
    """Epochs have 15 bits: after 32,767 micro-batches the query has other ids."""
    if not 0 <= task <= DRIVER_TASK:
        raise ValueError(
            f"a micro-batch that is written exactly once has no more than {DRIVER_TASK} tasks, not {task + 1}"
        )
    generation, epoch = divmod(batch_id, _EPOCHS)
    digest = sha256(f"{query_id}/{generation}".encode()).digest()
    query = int.from_bytes(digest[:8], "big") >> 2 + _TASK_BITS
    return Identity(_OWN_IDS | query << _TASK_BITS | task, epoch)


def before(client: Client, partitions: Iterable[TopicPartition]) -> Before:
    """All of the sink's producers that the partitions know; mostly those of the micro-batch before."""
    return {
        where: {each.producer_id: (each.producer_epoch, each.last_sequence) for each in states}
        for where, states in _states(client, partitions).items()
    }


def of_earlier_runs(known: Before, who: Identity) -> dict[TopicPartition, Written]:
    """The records of this micro-batch that were there before its tasks began, whichever task wrote them."""
    written: dict[TopicPartition, Written] = {}
    for where, states in known.items():
        mine = {number: each for number, each in states.items() if number >> _TASK_BITS == who.query}
        for producer_id, (epoch, last) in mine.items():
            if epoch > who.producer_epoch:
                raise _overtaken(where, Identity(producer_id, epoch), who)
            if epoch == who.producer_epoch and last >= 0:
                written.setdefault(where, {})[producer_id] = (0, last)
    return written


def earlier_attempts(
    client: Client, partitions: Iterable[TopicPartition], who: Identity, earlier: Mapping[TopicPartition, Written]
) -> dict[TopicPartition, EarlierAttempt]:
    """The partitions that have records of this very task, and which of them are not among those of earlier runs."""
    attempts: dict[TopicPartition, EarlierAttempt] = {}
    for where, states in _states(client, partitions).items():
        for state in states:
            if state.producer_id != who.producer_id:
                continue
            if state.producer_epoch > who.producer_epoch:
                raise _overtaken(where, Identity(state.producer_id, state.producer_epoch), who)
            if state.producer_epoch == who.producer_epoch and state.last_sequence >= 0:
                first = earlier.get(where, {}).get(who.producer_id, (0, -1))[1] + 1
                fingerprints = Counter[int]()
                if first <= state.last_sequence:
                    read = read_back(client, where, {who.producer_id: (first, state.last_sequence)}, who.producer_epoch)
                    fingerprints.update(np.concatenate([each.fingerprints for each in read]).tolist())
                attempts[where] = EarlierAttempt(state.last_sequence + 1, fingerprints)
    return attempts


def _overtaken(where: TopicPartition, later: Identity, who: Identity) -> NotTheSame:
    return NotTheSame(
        f"{where[0]}-{where[1]}: a later micro-batch of this query has been written, in epoch {later.producer_epoch} of"
        f" producer {later.producer_id}; this is epoch {who.producer_epoch}. Is the query running twice, or from an old"
        " copy of its checkpoint?"
    )


def fingerprints_of(records: memoryview, count: int) -> Any:
    """One for each record of an encoded batch: its key, value and headers, whatever its place."""
    arena = np.zeros(len(records) + PADDING_BYTES, np.uint8)
    arena[: len(records)] = np.frombuffer(records, np.uint8)
    columns = decode(arena, np.array([0]), np.array([len(records)]), np.array([count]))
    if len(columns.unreadable):
        raise ValueError(f"{count} records are not what they claim")
    return fingerprints(arena, columns.content, columns.end)


def still_to_write(rows: Any, known: Counter[int]) -> Any:
    """Which rows, by their fingerprints, have still to be written. Each that has not is taken out of `known`."""
    kept = np.ones(len(rows), bool)
    for number, fingerprint in enumerate(rows.tolist()):
        if known[fingerprint] > 0:
            known[fingerprint] -= 1
            kept[number] = False
    return kept


def check_nothing_left(left: Mapping[TopicPartition, EarlierAttempt]) -> None:
    for where, each in left.items():
        if each.fingerprints.total():
            raise other_rows(where, each.fingerprints.total())


def other_rows(where: TopicPartition, count: int) -> NotTheSame:
    return NotTheSame(
        f"{where[0]}-{where[1]}: {count} records that this micro-batch wrote before it was run again are not among its"
        " rows now. Exactly once needs a query that gives the same rows again: no rand(), no uuid()"
    )


def _states(client: Client, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[ProducerState]]:
    """The sink's own producers in each partition."""
    done: set[TopicPartition] = set()
    states: dict[TopicPartition, list[ProducerState]] = {}
    everything = set(partitions)

    def attempt() -> None:
        for leader, mine in by_leader(client, everything - done).items():
            topics = indexes_by_topic(mine)
            request = DescribeProducersRequest(
                topics=tuple(TopicRequest(name=name, partition_indexes=tuple(each)) for name, each in topics.items())
            )
            try:
                answer = client.ask(request, DescribeProducersResponse, node_id=leader)
            except Unreachable:
                for name in topics:
                    client.forget(name)
                raise
            for found_topic in answer.topics:
                for each in found_topic.partitions:
                    where = found_topic.name, each.partition_index
                    if each.error_code:
                        client.forget(where[0])
                        raise KafkaError(each.error_code, each.error_message or f"{where[0]}-{where[1]}")
                    done.add(where)
                    states[where] = [state for state in each.active_producers if state.producer_id >= _OWN_IDS]

    client.persist(attempt)
    return states


def _committed_end(client: Client, where: TopicPartition) -> int:
    """The end of the leader's log as it is now, once all before it is committed."""
    latest = list_offsets(client, {where: LATEST})[where]
    end = epoch_ends(client, {where: latest.epoch})[where].offset

    def committed() -> int:
        now = list_offsets(client, {where: LATEST})[where]
        if now.epoch != latest.epoch:
            place = f"{where[0]}-{where[1]} while it was asked for what was written"
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, place, final=True)
        if now.offset < end:
            raise Unreachable(f"{where[0]}-{where[1]}: what was written before is not committed yet")
        return end

    return client.persist(committed)


@dataclass(frozen=True, slots=True)
class ReadBack:
    """A batch that was looked for, and its records that were."""

    records: memoryview
    count: int
    fingerprints: Any
    kept: Any
    """Which of its records have the fingerprints."""


def read_back(client: Client, where: TopicPartition, wanted: Written, epoch: int) -> list[ReadBack]:
    """The records of these producers and sequences, looked for from the committed end of the log backwards."""
    topic, partition = where
    end = _committed_end(client, where)
    first = list_offsets(client, {where: EARLIEST})[where].offset
    ids = np.array(sorted(wanted), np.int64)
    batches: dict[int, ReadBack] = {}
    missing = dict(wanted)
    upper, step = end, max(_FIRST_STEP, 2 * sum(b - a + 1 for a, b in wanted.values()))
    while upper > first and missing:
        lower = max(first, upper - step)
        fetching = Fetching(
            client, OffsetRange(topic, partition, lower, upper), fetch_bytes=_FETCH_BYTES, read_committed=False
        )
        try:
            position = lower
            while position < upper:
                fetched = fetching.fetch(position)
                table = walk(fetched.arena, fetched.start, fetched.end)
                if table.fault is not None or not len(table):
                    raise Unreachable(f"{topic}-{partition}: nothing can be read at offset {position}")
                headers = table.headers
                mine = np.isin(headers["producer_id"], ids) & (headers["producer_epoch"] == epoch)
                for number in np.flatnonzero(mine).tolist():
                    header = headers[number]
                    producer_id, sequence = int(header["producer_id"]), int(header["base_sequence"])
                    a, b = wanted[producer_id]
                    if sequence <= a:
                        missing.pop(producer_id, None)
                    start = int(table.positions[number])
                    body = memoryview(fetched.arena)[start + HEADER_BYTES : start + int(table.sizes[number])]
                    # A batch that lies across two steps is batches twice.
                    batches[int(header["base_offset"])] = _kept(
                        bytes(decompress(int(header["attributes"]) & COMPRESSION_MASK, body)),
                        int(header["record_count"]), a - sequence, b - sequence,
                    )  # fmt: skip
                position = int(headers[-1]["base_offset"]) + int(headers[-1]["last_offset_delta"]) + 1
        finally:
            fetching.close()
        upper, step = lower, step * _STEP_GROWTH
    return [each for _, each in sorted(batches.items()) if len(each.kept)]


def _kept(records: bytes, count: int, first: int, last: int) -> ReadBack:
    kept = np.arange(max(0, first), min(count, last + 1))
    view = memoryview(records)
    return ReadBack(view, count, fingerprints_of(view, count)[kept], kept)


def tally(read: Iterable[ReadBack]) -> tuple[Any, Any]:
    """Each fingerprint, ascending, and how many records have it."""
    all_of = [each.fingerprints for each in read]
    values, counts = np.unique(np.concatenate(all_of) if all_of else np.empty(0, np.uint64), return_counts=True)
    return values, counts
