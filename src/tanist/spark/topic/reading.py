"""Reading a range of offsets of a partition from its leader, as Arrow batches.

Owns the fetches, the check of what they bring, and the rows of the schema of Spark's Kafka source. Batches are decoded
by columns, as those of segment files are. Unlike those of a file, the bytes of a broker must be sound: a wrong CRC ends
the task, and Spark tries it again.

All that was committed when the range was planned is of the leader epoch of then, or of an earlier one. So a batch of a
later epoch below the range's end says that an unclean election has truncated the log in between, and that other records
stand where those of the range stood (KIP-101, KIP-320).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tanist.client.positions import EARLIEST
from tanist.runtime.client.client import Client, KafkaError
from tanist.spark.segments.arrow_rows import HEADERS, gather, header_arrays, timestamps
from tanist.spark.segments.batch_table import BatchTable, crcs_right, walk
from tanist.spark.segments.record_columns import PADDING_BYTES, RecordColumns, decode
from tanist.spark.topic.fetching import Fetching
from tanist.spark.topic.offsets import UNKNOWN, epoch_ends, offset_at
from tanist.spark.topic.plan import DataLoss, OffsetRange
from tanist.wire.batch import COMPRESSION_MASK, CONTROL, HEADER_BYTES, LOG_APPEND_TIME, TRANSACTIONAL
from tanist.wire.compression import decompress
from tanist.wire.errors import ErrorCode, WireError

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

_UNPACKED_BYTES: Final = 32 << 20
"""The bytes that are decompressed at a time; a batch that is larger goes alone."""


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
    fetching = Fetching(client, wanted, fetch_bytes=fetch_bytes, read_committed=read_committed)
    try:
        yield from _read(client, fetching, wanted, columns, fail_on_data_loss, read_committed)
    finally:
        fetching.close()


def _read(
    client: Client,
    fetching: Fetching,
    wanted: OffsetRange,
    columns: Sequence[str],
    fail_on_data_loss: bool,
    read_committed: bool,
) -> Iterator[pa.RecordBatch]:
    position = wanted.start
    empty_since: float | None = None
    while position < wanted.end:
        try:
            fetched = fetching.fetch(position)
        except KafkaError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            position = _after_loss(client, wanted, position, fail_on_data_loss)
            continue
        arena = fetched.arena
        table = walk(arena, fetched.start, fetched.end)
        if table.fault is not None:
            raise WireError(f"{wanted.topic}-{wanted.partition}: what was fetched at {position} is damaged")
        if not len(table):
            # Below an end that was committed there are records: of a new leader once it knows its high watermark, or
            # never again, if the log was truncated.
            truncated_at = _cut_off_at(client, wanted)
            now = time.monotonic()
            empty_since = now if empty_since is None else empty_since
            if truncated_at is not None or now - empty_since > client.timeout_s:
                found_end = fetched.data.high_watermark if truncated_at is None else truncated_at
                position = _ended_early(wanted, position, found_end, fail_on_data_loss)
            continue
        empty_since = None
        headers = table.headers[-1]
        following = int(headers["base_offset"]) + int(headers["last_offset_delta"]) + 1
        if following < wanted.end:
            fetching.begin(following)
        if not crcs_right(arena, table).all():
            raise WireError(f"{wanted.topic}-{wanted.partition}: what was fetched at {position} is damaged")
        aborted = {(each.producer_id, each.first_offset) for each in fetched.data.aborted_transactions or ()}
        kept = _visible(arena, table, position, wanted.end, aborted if read_committed else set())
        rewritten = _rewritten(table, wanted)
        if rewritten is not None:
            offset, epoch = rewritten
            _lost(
                wanted, max(offset, wanted.start), fail_on_data_loss,
                f"what is there now was written in leader epoch {epoch}, after an unclean election cut the log off",
            )  # fmt: skip
            # The new leader's records are the next trigger's, which finds out where the old log ended.
            kept = kept[table.headers["base_offset"][kept] < offset]
            following = wanted.end
        for group, bodies, starts, ends in _bodies(arena, table, kept):
            yield from _rows(bodies, table.pick(group), starts, ends, wanted, position, columns)
        position = following


def _rewritten(table: BatchTable, wanted: OffsetRange) -> tuple[int, int] | None:
    """Offset and epoch of the first batch of the range that is of a later leader epoch than its end was."""
    if wanted.epoch == UNKNOWN:
        return None
    headers = table.headers
    later = np.flatnonzero((headers["leader_epoch"] > wanted.epoch) & (headers["base_offset"] < wanted.end))
    if not len(later):
        return None
    return int(headers["base_offset"][later[0]]), int(headers["leader_epoch"][later[0]])


def _cut_off_at(client: Client, wanted: OffsetRange) -> int | None:
    """Where the log ends that the range was planned by, if that is below the range's end; None if it is whole."""
    if wanted.epoch == UNKNOWN:
        return None
    where = wanted.topic, wanted.partition
    end = epoch_ends(client, {where: wanted.epoch})[where].offset
    return end if 0 <= end < wanted.end else None


def _after_loss(client: Client, wanted: OffsetRange, position: int, fail: bool) -> int:
    """Where to go on behind records that were planned to be read and are gone."""
    first = offset_at(client, (wanted.topic, wanted.partition), EARLIEST)
    following = min(first, wanted.end) if first > position else wanted.end
    why = "they have expired" if first > position else "it was truncated"
    _lost(wanted, position, fail, f"the log begins at {first}: {why}", following)
    return following


def _ended_early(wanted: OffsetRange, position: int, log_end: int, fail: bool) -> int:
    _lost(wanted, position, fail, f"the log ends at {log_end}: it was truncated")
    return wanted.end


def _lost(wanted: OffsetRange, position: int, fail: bool, why: str, following: int | None = None) -> None:
    """`DataLoss`, or a line in the worker's log."""
    epoch = "" if wanted.epoch == UNKNOWN else f", in leader epoch {wanted.epoch},"
    message = (
        f"{wanted.topic}-{wanted.partition}: offsets {position} to {wanted.end if following is None else following}"
        f" were there{epoch} when the query was planned and are gone; {why}"
    )
    if fail:
        raise DataLoss(f"{message}. failOnDataLoss=false goes on")
    print(f"tanist: {message}; passed over", file=sys.stderr)


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
    decoded = decode(arena, starts, ends, table.headers["record_count"])
    if len(decoded.unreadable):
        offset = table.headers["base_offset"][decoded.unreadable[0]]
        raise WireError(
            f"{wanted.topic}-{wanted.partition}: the batch at offset {offset} has other records than it claims"
        )
    offsets = table.headers["base_offset"][decoded.batch] + decoded.offset_delta
    inside = np.flatnonzero((offsets >= max(position, wanted.start)) & (offsets < wanted.end))
    if not len(inside):
        return
    # Offsets ascend, so that what is inside is one piece.
    part = slice(int(inside[0]), int(inside[-1]) + 1)
    shared = pa.py_buffer(arena)
    count = part.stop - part.start
    arrays = [_column(name, arena, shared, table, decoded, part, offsets, wanted, count) for name in columns]
    yield pa.RecordBatch.from_arrays(arrays, list(columns))


def _column(
    name: str, arena: Any, shared: Any, table: BatchTable, decoded: RecordColumns, part: slice, offsets: Any,
    wanted: OffsetRange, count: int,
) -> pa.Array:  # fmt: skip
    if name == "key":
        return gather(arena, shared, decoded.key[part], decoded.key_length[part])
    if name == "value":
        return gather(arena, shared, decoded.value[part], decoded.value_length[part])
    if name == "topic":
        return pa.repeat(pa.scalar(wanted.topic, pa.string()), count)
    if name == "partition":
        return pa.repeat(pa.scalar(wanted.partition, pa.int32()), count)
    if name == "offset":
        return pa.array(offsets[part])
    if name == "timestamp":
        return timestamps(decoded, table.headers, part)
    if name == "timestampType":
        fixed = table.headers["attributes"][decoded.batch[part]] & LOG_APPEND_TIME != 0
        return pa.array(fixed.astype(np.int32))
    headers = header_arrays(arena, shared, decoded, part)
    # As Spark's source has it: null where a record has none.
    empty = decoded.header_count[part] == 0
    return pa.ListArray.from_arrays(headers.offsets, headers.values, type=HEADERS, mask=pa.array(empty))
