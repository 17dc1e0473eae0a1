"""Whether the replicas of partitions hold the same bytes: places of their logs, fetched from each replica.

Any replica answers a consumer's Fetch from version 11 on (KIP-392), up to its own high watermark. Batches that two
replicas both give are compared whole, so CRC, offsets and leader epoch are in it. Compaction rewrites batches on each
replica at its own time: there the records that both still have are compared.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tanist.client.positions import EARLIEST, FETCH_VERSION_MAX, LATEST, fetch_request, list_offsets_request
from tanist.runtime.client.admin import TopicDescription
from tanist.runtime.client.client import Client
from tanist.runtime.client.partition_context import topic_settings
from tanist.runtime.client.records import list_offset
from tanist.wire.batch import Record, crc_matches, decode_batch, iterate_headers
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.list_offsets_response import ListOffsetsResponse

_CLEANUP_POLICY = "cleanup.policy"
"""The last that names topics by their names; a consumer's version that followers answer."""
_BYTES = 1 << 16
_WAIT_MS = 100
_CATCH_UP_S = 10.0
_PAUSE_S = 0.05
_ANY_REPLICA = -2
"""The replica id of debugging clients, whom a follower answers, too."""


class _Missing(Exception):
    """A replica does not give what is committed."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The result. `differences` is empty if all replicas agree."""

    partitions: int
    of: int
    """How many partitions there are with records on several replicas."""
    batches: int
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Batch:
    offset: int
    data: bytes


def compare_replicas(client: Client, topics: Sequence[TopicDescription], most: int) -> Compared:
    """Compare three places (start, end, one between) of at most so many partitions, drawn at random."""
    several = [
        (topic.topic, partition.partition, partition.isr)
        for topic in topics
        for partition in topic.partitions
        if len(partition.isr) > 1 and partition.leader >= 0
    ]
    drawn = sorted(random.sample(several, min(most, len(several))))
    names = sorted({topic for topic, _, _ in drawn})
    policies = topic_settings(client, names, {_CLEANUP_POLICY}) if names else {}
    batches = 0
    differences: list[str] = []
    for topic, partition, isr in drawn:
        policy = policies.get(topic, {}).get(_CLEANUP_POLICY)
        compacted = policy is not None and "compact" in (policy.value or "")
        compared, found = _compare(client, topic, partition, isr, compacted)
        batches += compared
        differences += found
    return Compared(len(drawn), len(several), batches, tuple(differences))


def _compare(client: Client, topic: str, partition: int, isr: Sequence[int], compacted: bool) -> tuple[int, list[str]]:
    start = list_offset(client, topic, partition, EARLIEST)
    end = list_offset(client, topic, partition, LATEST)
    if start >= end:
        return 0, []
    compared = 0
    found: list[str] = []
    for offset in sorted({start, random.randrange(start, end), end - 1}):
        held: dict[int, list[_Batch]] = {}
        for node_id in isr:
            try:
                batches = _fetch(client, topic, partition, node_id, offset)
            except _Missing as missing:
                found.append(f"{topic}-{partition} at offset {offset}: broker {node_id} answers {missing}")
                continue
            if batches is not None:
                held[node_id] = batches
        for node_id, batches in held.items():
            for batch in batches:
                if not crc_matches(batch.data, 0, len(batch.data)):
                    found.append(f"{topic}-{partition} at offset {batch.offset}: the CRC on broker {node_id} is wrong")
        compared += len(max(held.values(), key=len, default=[]))
        found += [
            f"{topic}-{partition} at offset {at}: brokers {_ids(of)} differ" for at, of in _differ(held, compacted)
        ]
    return compared, found


def _differ(held: Mapping[int, Sequence[_Batch]], compacted: bool) -> Iterator[tuple[int, tuple[int, int]]]:
    """The first difference of each replica from the first one: its offset, and the two."""
    if not held:
        return
    (reference, expected), *others = sorted(held.items())
    for node_id, batches in others:
        offset = (_different_record if compacted else _different_batch)(expected, batches)
        if offset is not None:
            yield offset, (reference, node_id)


def _different_batch(one: Sequence[_Batch], other: Sequence[_Batch]) -> int | None:
    # One answer may be shorter, for segments end elsewhere; but both begin with the batch of the same offset.
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return min(mine.offset, theirs.offset)
    return None


def _different_record(one: Sequence[_Batch], other: Sequence[_Batch]) -> int | None:
    mine, theirs = _records(one), _records(other)
    return next((at for at in sorted(mine.keys() & theirs.keys()) if mine[at] != theirs[at]), None)


def _records(batches: Sequence[_Batch]) -> dict[int, tuple[object, ...]]:
    def content(record: Record) -> tuple[object, ...]:
        return (record.timestamp, record.key, record.value, tuple(record.headers))

    return {record.offset: content(record) for batch in batches for record in decode_batch(memoryview(batch.data))}


def _fetch(client: Client, topic: str, partition: int, node_id: int, offset: int) -> list[_Batch] | None:
    """The batches from the one with this offset on; None if the replica's retention has deleted it.

    A follower learns a moment later than the leader that records are committed, so it is waited for: `_Missing`.
    """
    request = fetch_request((topic, partition), offset, max_bytes=_BYTES, max_wait_ms=_WAIT_MS)
    deadline = time.monotonic() + _CATCH_UP_S
    while True:
        answer = client.ask(request, FetchResponse, node_id=node_id, max_version=FETCH_VERSION_MAX)
        found = answer.responses[0].partitions[0]
        code = answer.error_code or found.error_code
        if not code and found.records:
            view = memoryview(found.records)
            return [
                _Batch(header.base_offset, bytes(view[at : at + header.size_bytes]))
                for at, header in iterate_headers(view)
            ]
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and offset < _first_offset(client, topic, partition, node_id):
            return None
        if time.monotonic() > deadline:
            raise _Missing(f"{ErrorCode.name_of(code)}" if code else "no records")
        time.sleep(_PAUSE_S)


def _first_offset(client: Client, topic: str, partition: int, node_id: int) -> int:
    """Where the log of this replica begins: each replica's retention runs by itself."""
    request = list_offsets_request({(topic, partition): EARLIEST}, replica_id=_ANY_REPLICA, timeout_ms=1000)
    found = client.ask(request, ListOffsetsResponse, node_id=node_id).topics[0].partitions[0]
    return -1 if found.error_code else found.offset


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))
