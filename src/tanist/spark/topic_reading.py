"""Reading a range of offsets of a partition from its leader, as Arrow batches.

Owns the fetches, the check of what they bring, and the rows of the schema of Spark's Kafka source. Batches are decoded
by columns, as those of segment files are. Unlike those of a file, the bytes of a broker must be sound: a wrong CRC ends
the task, and Spark tries it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tanist.runtime.client import Client, KafkaError, Unreachable
from tanist.runtime.records import EARLIEST
from tanist.spark.arrow_rows import HEADERS, gather, header_arrays, timestamps
from tanist.spark.batch_table import BatchTable, crcs_right, walk
from tanist.spark.record_columns import PADDING_BYTES, RecordColumns, decode
from tanist.spark.topic_plan import DataLoss, OffsetRange, offset_at
from tanist.wire.batch import COMPRESSION_MASK, CONTROL, HEADER_BYTES, LOG_APPEND_TIME, TRANSACTIONAL
from tanist.wire.compression import decompress
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.fetch_response import FetchResponse, PartitionData

TYPES: Final[dict[str, Any]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS,
}

_FETCH_VERSION_MAX: Final = 12
"""The last that names a topic by its name; later ones use its id."""
_MAX_WAIT_MS: Final = 500
_UNPACKED_BYTES: Final = 32 << 20
"""What is decompressed at a time; a batch that is larger goes alone."""


def read_range(
    client: Client,
    wanted: OffsetRange,
    columns: Sequence[str],
    *,
    fetch_bytes: int,
    fail_on_data_loss: bool,
    read_committed: bool,
) -> Iterator[pa.RecordBatch]:
    """The records of the range. Offsets that compaction or markers left empty are no loss."""
    position = wanted.start
    empty_since: float | None = None
    while position < wanted.end:
        try:
            data = client.persist(lambda at=position: _fetch(client, wanted, at, fetch_bytes, read_committed))  # type: ignore[misc]
        except KafkaError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            position = _after_loss(client, wanted, position, fail_on_data_loss)
            continue
        blob = data.records or b""
        arena = np.zeros(len(blob) + PADDING_BYTES, np.uint8)
        arena[: len(blob)] = np.frombuffer(blob, np.uint8)
        table = walk(arena, 0, len(blob))
        if table.fault is not None or not crcs_right(arena, table).all():
            raise WireError(f"{wanted.topic}-{wanted.partition}: what was fetched at {position} is damaged")
        if not len(table):
            # Below an end that was committed there are records: of a new leader once it knows its high watermark, or
            # never again, if the log was truncated.
            now = time.monotonic()
            empty_since = now if empty_since is None else empty_since
            if now - empty_since > client.timeout_s:
                position = _ended_early(wanted, position, data.high_watermark, fail_on_data_loss)
            continue
        empty_since = None
        aborted = {(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()}
        kept = _visible(arena, table, position, wanted.end, aborted if read_committed else set())
        for group, bodies, starts, ends in _bodies(arena, table, kept):
            yield from _rows(bodies, table.pick(group), starts, ends, wanted, position, columns)
        headers = table.headers[-1]
        position = int(headers["base_offset"]) + int(headers["last_offset_delta"]) + 1


def _fetch(client: Client, wanted: OffsetRange, offset: int, fetch_bytes: int, read_committed: bool) -> PartitionData:
    asked = FetchPartition(partition=wanted.partition, fetch_offset=offset, partition_max_bytes=fetch_bytes)
    request = FetchRequest(
        max_wait_ms=_MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=fetch_bytes,
        isolation_level=1 if read_committed else 0,
        topics=(FetchTopic(topic=wanted.topic, partitions=(asked,)),),
    )
    try:
        leader = client.leader_of(wanted.topic, wanted.partition)
        answer = client.ask(request, FetchResponse, node_id=leader, max_version=_FETCH_VERSION_MAX)
    except Unreachable:
        client.forget(wanted.topic)
        raise
    found = answer.responses[0].partitions[0] if answer.responses else PartitionData()
    code = answer.error_code or found.error_code
    if code:
        client.forget(wanted.topic)
        place = f"{wanted.topic}-{wanted.partition} at offset {offset}"
        raise KafkaError(code, place, final=code == ErrorCode.OFFSET_OUT_OF_RANGE)
    return found


def _after_loss(client: Client, wanted: OffsetRange, position: int, fail: bool) -> int:
    """Where to go on behind records that were planned to be read and are gone."""
    first = offset_at(client, wanted.topic, wanted.partition, EARLIEST)
    following = min(first, wanted.end) if first > position else wanted.end
    if fail:
        raise DataLoss(
            f"{wanted.topic}-{wanted.partition}: offsets {position} to {following} were there when the query was"
            f" planned and are gone; the log begins at {first}. They have expired, or the log was truncated;"
            " failOnDataLoss=false goes on"
        )
    return following


def _ended_early(wanted: OffsetRange, position: int, high_watermark: int, fail: bool) -> int:
    if fail:
        raise DataLoss(
            f"{wanted.topic}-{wanted.partition}: offsets {position} to {wanted.end} were there when the query was"
            f" planned and are gone; the log ends at {high_watermark}: it was truncated. failOnDataLoss=false goes on"
        )
    return wanted.end


def _visible(arena: Any, table: BatchTable, start: int, end: int, aborted: set[tuple[int, int]]) -> Any:
    """Which batches have records for a consumer: within the range, no markers, not aborted."""
    headers = table.headers
    attributes = headers["attributes"]
    last = headers["base_offset"] + headers["last_offset_delta"]
    mask = (attributes & CONTROL == 0) & (last >= start) & (headers["base_offset"] < end)
    if not aborted:
        return np.flatnonzero(mask)
    # Transactions are aborted from their first offset on to the marker that ends them.
    waiting = sorted(aborted, key=lambda each: each[1])
    open_ids: set[int] = set()
    for number in np.flatnonzero(attributes & TRANSACTIONAL != 0).tolist():
        producer_id = int(headers["producer_id"][number])
        while waiting and waiting[0][1] <= int(last[number]):
            open_ids.add(waiting.pop(0)[0])
        if attributes[number] & CONTROL:
            open_ids.discard(producer_id)
        elif producer_id in open_ids:
            mask[number] = False
    return np.flatnonzero(mask)


def _bodies(arena: Any, table: BatchTable, kept: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Numbers of batches, and where the bodies of their records lie in which memory, in the order of offsets."""
    starts = table.positions + HEADER_BYTES
    ends = table.positions + table.sizes
    codecs = table.headers["attributes"] & COMPRESSION_MASK
    packed = codecs[kept] != 0
    for group in np.split(kept, np.flatnonzero(packed[1:] != packed[:-1]) + 1):
        if not len(group):
            continue
        if not codecs[group[0]]:
            yield group, arena, starts[group], ends[group]
            continue
        bodies: list[Any] = []
        numbers: list[int] = []
        for number in group.tolist():
            body = decompress(int(codecs[number]), memoryview(arena)[int(starts[number]) : int(ends[number])])
            bodies.append(body)
            numbers.append(number)
            if sum(map(len, bodies)) > _UNPACKED_BYTES:
                yield np.array(numbers), *_joined(bodies)
                bodies, numbers = [], []
        if bodies:
            yield np.array(numbers), *_joined(bodies)


def _joined(bodies: Sequence[Any]) -> tuple[Any, Any, Any]:
    sizes = np.array([len(body) for body in bodies], np.int64)
    last = np.cumsum(sizes)
    memory = np.zeros(int(last[-1]) + PADDING_BYTES, np.uint8)
    for body, end, size in zip(bodies, last.tolist(), sizes.tolist()):
        memory[end - size : end] = np.frombuffer(body, np.uint8, size)
    return memory, last - sizes, last


def _rows(
    arena: Any, table: BatchTable, starts: Any, ends: Any, wanted: OffsetRange, position: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    found = decode(arena, starts, ends, table.headers["record_count"])
    if len(found.unreadable):
        offset = table.headers["base_offset"][found.unreadable[0]]
        raise WireError(
            f"{wanted.topic}-{wanted.partition}: the batch at offset {offset} has other records than it claims"
        )
    offsets = table.headers["base_offset"][found.batch] + found.offset_delta
    inside = np.flatnonzero((offsets >= max(position, wanted.start)) & (offsets < wanted.end))
    if not len(inside):
        return
    # Offsets ascend, so that what is inside is one piece.
    part = slice(int(inside[0]), int(inside[-1]) + 1)
    shared = pa.py_buffer(arena)
    count = part.stop - part.start
    arrays = [_column(name, arena, shared, table, found, part, offsets, wanted, count) for name in columns]
    yield pa.RecordBatch.from_arrays(arrays, list(columns))


def _column(
    name: str, arena: Any, shared: Any, table: BatchTable, found: RecordColumns, part: slice, offsets: Any,
    wanted: OffsetRange, count: int,
) -> pa.Array:  # fmt: skip
    if name == "key":
        return gather(arena, shared, found.key[part], found.key_length[part])
    if name == "value":
        return gather(arena, shared, found.value[part], found.value_length[part])
    if name == "topic":
        return pa.repeat(pa.scalar(wanted.topic, pa.string()), count)
    if name == "partition":
        return pa.repeat(pa.scalar(wanted.partition, pa.int32()), count)
    if name == "offset":
        return pa.array(offsets[part])
    if name == "timestamp":
        return timestamps(found, table.headers, part)
    if name == "timestampType":
        fixed = table.headers["attributes"][found.batch[part]] & LOG_APPEND_TIME != 0
        return pa.array(fixed.astype(np.int32))
    headers = header_arrays(arena, shared, found, part)
    # As Spark's source has it: null where a record has none.
    empty = found.header_count[part] == 0
    return pa.ListArray.from_arrays(headers.offsets, headers.values, type=HEADERS, mask=pa.array(empty))
