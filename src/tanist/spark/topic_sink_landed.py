"""What of a micro-batch is in the topic already: how a streaming sink writes a batch again that was cut short.

Spark gives a query an id that outlives its runs, numbers its micro-batches, and gives each task the same rows when a
batch is run again. The sink makes of these three the producer that the task's records are sent by:

    producer id      from the query's id and the task's number, above all ids that a cluster hands out
    producer epoch   from the number of the micro-batch
    sequences        from 0 in each partition

So brokers know, and keep over restarts and elections, how many records of exactly this task of this micro-batch are in
a partition: DescribeProducers tells the last sequence. If there is one, an earlier run has written; its records are
read back from the end of the log, and the rows that are among them are left out. A task of an earlier micro-batch that
lives on somewhere is refused by its epoch.

What was read back must be committed first: what only an old leader had is not counted on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np

from tanist.runtime.client import Client, KafkaError, Unreachable
from tanist.runtime.records import EARLIEST, LATEST
from tanist.spark.batch_table import walk
from tanist.spark.fingerprints import PADDING_BYTES, fingerprints
from tanist.spark.record_columns import decode
from tanist.spark.topic_fetching import Fetching
from tanist.spark.topic_offsets import by_leader, epoch_ends, list_offsets
from tanist.spark.topic_options import TopicPartition
from tanist.spark.topic_plan import OffsetRange
from tanist.wire.batch import COMPRESSION_MASK, HEADER_BYTES
from tanist.wire.compression import decompress
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from tanist.wire.messages.describe_producers_response import DescribeProducersResponse, ProducerState

_OWN_IDS: Final = 1 << 62
"""Clusters hand out producer ids from 0 on, a thousand at a time."""
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


@dataclass(frozen=True, slots=True)
class Landed:
    """What of the task's records is in a partition."""

    next_sequence: int
    fingerprints: Counter[int]


def identity(query_id: str, task: int, batch_id: int) -> Identity:
    """Epochs have 15 bits: after 32,767 micro-batches the task has another id."""
    generation, epoch = divmod(batch_id, _EPOCHS)
    digest = sha256(f"{query_id}/{task}/{generation}".encode()).digest()
    return Identity(_OWN_IDS | int.from_bytes(digest[:8], "big") >> 2, epoch)


def landed(client: Client, partitions: Iterable[TopicPartition], who: Identity) -> dict[TopicPartition, Landed]:
    """The partitions that have records of this producer and epoch, and which. Mostly none."""
    found: dict[TopicPartition, Landed] = {}
    for where, state in _states(client, partitions, who.producer_id).items():
        if state.producer_epoch > who.producer_epoch:
            raise NotTheSame(
                f"{where[0]}-{where[1]}: a later micro-batch of this query has been written, in epoch"
                f" {state.producer_epoch} of producer {who.producer_id}; this is epoch {who.producer_epoch}. Is the"
                " query running twice, or from an old copy of its checkpoint?"
            )
        if state.producer_epoch == who.producer_epoch and state.last_sequence >= 0:
            end = _committed_end(client, where)
            found[where] = Landed(state.last_sequence + 1, _read_back(client, where, who, end, state.last_sequence + 1))
    return found


def fingerprints_of(records: memoryview, count: int) -> Any:
    """One for each record of an encoded batch: its key, value and headers, whatever its place."""
    arena = np.zeros(len(records) + PADDING_BYTES, np.uint8)
    arena[: len(records)] = np.frombuffer(records, np.uint8)
    found = decode(arena, np.array([0]), np.array([len(records)]), np.array([count]))
    if len(found.unreadable):
        raise ValueError(f"{count} records are not what they claim")
    return fingerprints(arena, found.content, found.end)


def not_landed(found: Any, known: Counter[int]) -> Any:
    """Which rows have still to be written. Each that has not is taken out of `known`."""
    kept = np.ones(len(found), bool)
    for number, fingerprint in enumerate(found.tolist()):
        if known[fingerprint] > 0:
            known[fingerprint] -= 1
            kept[number] = False
    return kept


def check_nothing_left(left: Mapping[TopicPartition, Landed]) -> None:
    for (topic, partition), each in left.items():
        count = each.fingerprints.total()
        if count:
            raise NotTheSame(
                f"{topic}-{partition}: {count} of {each.next_sequence} records that this micro-batch wrote before it"
                " was run again are not among its rows now. Exactly once needs a query that gives the same rows again:"
                " no rand(), no uuid(), and the same number of tasks"
            )


def _states(
    client: Client, partitions: Iterable[TopicPartition], producer_id: int
) -> dict[TopicPartition, ProducerState]:
    done: set[TopicPartition] = set()
    found: dict[TopicPartition, ProducerState] = {}
    everything = set(partitions)

    def attempt() -> None:
        for leader, mine in by_leader(client, everything - done).items():
            topics: dict[str, list[int]] = {}
            for topic, partition in mine:
                topics.setdefault(topic, []).append(partition)
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
                    for state in each.active_producers:
                        if state.producer_id == producer_id:
                            found[where] = state

    client.persist(attempt)
    return found


def _committed_end(client: Client, where: TopicPartition) -> int:
    """The end of the leader's log as it is now, once all before it is committed."""
    latest = list_offsets(client, {where: LATEST})[where]
    end = epoch_ends(client, {where: latest.epoch})[where].offset

    def committed() -> int:
        now = list_offsets(client, {where: LATEST})[where]
        if now.epoch != latest.epoch:
            place = f"{where[0]}-{where[1]} while it was asked what has landed"
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, place, final=True)
        if now.offset < end:
            raise Unreachable(f"{where[0]}-{where[1]}: what was written before is not committed yet")
        return end

    return client.persist(committed)


def _read_back(client: Client, where: TopicPartition, who: Identity, end: int, count: int) -> Counter[int]:
    """The records of this producer and epoch, looked for from the end of the log backwards."""
    topic, partition = where
    first = list_offsets(client, {where: EARLIEST})[where].offset
    found: dict[int, Any] = {}
    sequences: set[int] = set()
    upper, step = end, max(_FIRST_STEP, 2 * count)
    while upper > first and 0 not in sequences:
        lower = max(first, upper - step)
        wanted = OffsetRange(topic, partition, lower, upper)
        fetching = Fetching(client, wanted, fetch_bytes=_FETCH_BYTES, read_committed=False)
        try:
            position = lower
            while position < upper:
                fetched = fetching.fetch(position)
                table = walk(fetched.arena, fetched.start, fetched.end)
                if table.fault is not None or not len(table):
                    raise Unreachable(f"{topic}-{partition}: nothing can be read at offset {position}")
                headers = table.headers
                mine = (headers["producer_id"] == who.producer_id) & (headers["producer_epoch"] == who.producer_epoch)
                for number in np.flatnonzero(mine).tolist():
                    header = headers[number]
                    start = int(table.positions[number])
                    body = memoryview(fetched.arena)[start + HEADER_BYTES : start + int(table.sizes[number])]
                    records = decompress(int(header["attributes"]) & COMPRESSION_MASK, body)
                    # A batch that lies across two steps is found twice.
                    found[int(header["base_offset"])] = fingerprints_of(
                        memoryview(records), int(header["record_count"])
                    )
                    sequences.add(int(header["base_sequence"]))
                position = int(headers[-1]["base_offset"]) + int(headers[-1]["last_offset_delta"]) + 1
        finally:
            fetching.close()
        upper, step = lower, step * _STEP_GROWTH
    return Counter(fingerprint for each in found.values() for fingerprint in each.tolist())
