"""Fetch responses (key 1), versions 4-18, of a leader; written by hand.

A response is a list of chunks in which record data stands as it was given: a range of a file, or a buffer. It is never
copied here. Errors and sessions from 7, flexible from 12, topic ids from 13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Layout
from struct import error as struct_error
from typing import Any, Final, NamedTuple

from tanist.ports import Chunk, FileRange
from tanist.wire.errors import EncodingError
from tanist.wire.fast_path import (
    MAX_TOPIC_NAME,
    NAME_BYTES,
    NodeEndpoint,
    PackersByLength,
    Topic,
    compact_topic,
    encode_node_endpoints,
    learn_name_bytes,
)
from tanist.wire.primitives import UVARINTS, write_uvarint

FIRST_VERSION: Final = 4
LAST_VERSION: Final = 18


class FetchedPartition(NamedTuple):
    """The records read of a partition, or the error."""

    partition: int
    error: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Chunk | Sequence[Chunk] | None = None
    """One chunk or several. None is sent as no bytes rather than null, as Kafka does. When parsed, a memoryview."""
    aborted: Sequence[tuple[int, int]] | None = None
    """Aborted transactions: (producer id, first offset). None for clients that read uncommitted."""
    preferred_read_replica: int = -1
    diverging_epoch: tuple[int, int] | None = None
    """(epoch, end offset) at which the logs diverge: truncate to it."""
    current_leader: tuple[int, int] | None = None
    """(leader id, leader epoch)."""
    snapshot_id: tuple[int, int] | None = None
    """(end offset, epoch) of the snapshot to load instead."""


_INT16 = Layout(">h")
_INT32 = Layout(">i")
_INT64 = Layout(">q")
_TWO = Layout(">ii")

# Responses. What stands before the topics: (correlation id, [tags], throttle time, [error, session id]).

_HEAD_4 = Layout(">iii")
"""Correlation id, throttle time, topics."""
_HEAD_7 = Layout(">iihii")
"""Also, before the topics: error, session id."""
_HEAD_12 = Layout(">ixihi")
"""The same with the header's tags, and without the topics, whose length is a varint."""

_PARTITION_4 = Layout(">ihqq")
"""Partition, error, high watermark, last stable offset."""
_PARTITION_5 = Layout(">ihqqq")
"""Also: log start offset."""
_PARTITION_12 = Layout(">ihqqqBi")
"""Also: aborted transactions (null), preferred read replica."""
_ABORTED = Layout(">qq")
_FLEXIBLE_ABORTED = Layout(">qqx")

# The usual response in one go, up to the length of the records: one topic, one partition, no aborted transactions.
_USUAL_4 = PackersByLength(">iiiih%dsiihqqii")
_USUAL_5 = PackersByLength(">iiiih%dsiihqqqii")
_USUAL_7 = PackersByLength(">iiihiih%dsiihqqqii")
_USUAL_11 = PackersByLength(">iiihiih%dsiihqqqiii")
_USUAL_12 = PackersByLength(">iixihiBB%dsBihqqqBi")
_USUAL_13 = Layout(">iixihiB16sBihqqqBi")

_NO_TAGS_3: Final = b"\0\0\0"
"""Of the partition, the topic and the response."""


def encode_fetch_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[Topic, Sequence[FetchedPartition]]],
    *,
    error: int = 0,
    session_id: int = 0,
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Chunk]:
    """A whole frame, its length prefix in the first chunk, the record data as it was given."""
    if not FIRST_VERSION <= version <= LAST_VERSION:
        raise EncodingError(f"FetchResponse has versions {FIRST_VERSION} to {LAST_VERSION}, not {version}")
    try:
        if len(topics) == 1 and len(topics[0][1]) == 1 and not node_endpoints:
            usual = _usual_response(version, correlation_id, topics[0], error, session_id, throttle_time_ms)
            if usual is not None:
                return usual
        if version < 12:
            return _old_response(version, correlation_id, topics, error, session_id, throttle_time_ms)
        return _flexible_response(version, correlation_id, topics, error, session_id, throttle_time_ms, node_endpoints)
    except (struct_error, AttributeError, TypeError, UnicodeEncodeError) as problem:
        raise EncodingError(f"FetchResponse version {version}: {problem}") from problem


def encode_fetched(
    version: int,
    correlation_id: int,
    topic: Topic,
    index: int,
    high_watermark: int,
    last_stable_offset: int,
    log_start_offset: int,
    records: FileRange,
) -> list[Chunk]:
    """The answer of one partition that has records, aborted transactions not asked for, and nothing unusual."""
    if version < 12:
        result = FetchedPartition(index, 0, high_watermark, last_stable_offset, log_start_offset, records)
        return encode_fetch_response(version, correlation_id, [(topic, [result])])
    size = records.length
    length = write_uvarint(size + 1)
    pack, rest, middle = _FETCHED.get(topic) or _learn_fetched(topic)
    head = pack(
        rest + len(length) + size, correlation_id, middle, index,
        high_watermark, last_stable_offset, log_start_offset, _NO_REPLICA, length,
    )  # fmt: skip
    return [head[: rest + 1 + len(length)], records, _NO_TAGS_3]


_FETCHED_PATTERN: Final = ">iixxxxxxxxxxx%dsixxqqqx4s5s"
"""Length, correlation id, no tags, no throttling, no error, no session, `_FETCHED`'s bytes, index, no error, high
watermark, last stable offset, log start offset, null for the aborted transactions, no preferred replica, and at most
five bytes of the records' length."""
_NO_REPLICA: Final = b"\xff\xff\xff\xff"
_FETCHED: Final[dict[Topic, tuple[Callable[..., bytes], int, bytes]]] = {}
"""By topic: the packer of the beginning of an answer from version 12 on, the frame's length without the records and
their length, and the bytes for "this topic, one partition" in it.
"""
_FETCHED_MAX: Final = 20_000


def _learn_fetched(topic: Topic) -> tuple[Callable[..., bytes], int, bytes]:
    middle = b"\x02" + compact_topic(topic, not isinstance(topic, str)) + b"\x02"
    layout = Layout(_FETCHED_PATTERN % len(middle))
    if len(_FETCHED) >= _FETCHED_MAX:
        _FETCHED.clear()
    found = _FETCHED[topic] = (layout.pack, layout.size - 5 - 4 + len(_NO_TAGS_3), middle)
    return found


def _usual_response(
    version: int,
    correlation_id: int,
    topic_result: tuple[Any, Sequence[FetchedPartition]],
    error: int,
    session_id: int,
    throttle_time_ms: int,
) -> list[Chunk] | None:
    """The response if it is for one partition and has nothing unusual; None if it is not."""
    topic, (result,) = topic_result
    (
        index, code, high_watermark, stable, log_start, records, aborted, replica, diverging, leader, snapshot
    ) = result  # fmt: skip
    if aborted or diverging is not None or leader is not None or snapshot is not None:
        return None
    kind = type(records)
    if kind is FileRange:
        size = records.length  # type: ignore[union-attr]
    elif records is None:
        size = 0
    elif kind is list or kind is tuple:
        return None
    else:
        size = len(records)  # type: ignore[arg-type]
    if version > 11:
        length = UVARINTS[size + 1] if size < 127 else write_uvarint(size + 1)
        # one for null, for clients that read uncommitted; None and () differ
        none = 0 if aborted is None else 1
        if version > 12:
            head = _USUAL_13.pack(
                _USUAL_13.size - 1 + len(length) + size, correlation_id, throttle_time_ms, error, session_id,
                2, topic.bytes, 2, index, code, high_watermark, stable, log_start, none, replica,
            )  # fmt: skip
        else:
            name = NAME_BYTES.get(topic) or learn_name_bytes(topic)
            n = len(name)
            if n > 126:
                return None
            pack, head_size = _USUAL_12[n]
            head = pack(
                head_size - 1 + len(length) + size, correlation_id, throttle_time_ms, error, session_id,
                2, n + 1, name, 2, index, code, high_watermark, stable, log_start, none, replica,
            )  # fmt: skip
        if not size:
            return [head + length + _NO_TAGS_3]
        return [head + length, records, _NO_TAGS_3]  # type: ignore[list-item]
    name = NAME_BYTES.get(topic) or learn_name_bytes(topic)
    n = len(name)
    if n > MAX_TOPIC_NAME:
        return None
    none = -1 if aborted is None else 0
    if version > 10:
        pack, head_size = _USUAL_11[n]
        head = pack(
            head_size - 4 + size, correlation_id, throttle_time_ms, error, session_id, 1, n, name, 1,
            index, code, high_watermark, stable, log_start, none, replica, size,
        )  # fmt: skip
    elif version > 6:
        pack, head_size = _USUAL_7[n]
        head = pack(
            head_size - 4 + size, correlation_id, throttle_time_ms, error, session_id, 1, n, name, 1,
            index, code, high_watermark, stable, log_start, none, size,
        )  # fmt: skip
    elif version > 4:
        pack, head_size = _USUAL_5[n]
        head = pack(
            head_size - 4 + size, correlation_id, throttle_time_ms, 1, n, name, 1,
            index, code, high_watermark, stable, log_start, none, size,
        )  # fmt: skip
    else:
        pack, head_size = _USUAL_4[n]
        head = pack(
            head_size - 4 + size, correlation_id, throttle_time_ms, 1, n, name, 1,
            index, code, high_watermark, stable, none, size,
        )  # fmt: skip
    return [head, records] if size else [head]  # type: ignore[list-item]


def _records(records: Chunk | Sequence[Chunk] | None) -> tuple[Sequence[Chunk], int]:
    """The chunks of a partition's records, and how long they are together."""
    kind = type(records)
    if kind is FileRange:
        return (records,), records.length  # type: ignore[union-attr, return-value]
    if records is None:
        return (), 0
    if isinstance(records, list | tuple):
        return records, sum(chunk.length if isinstance(chunk, FileRange) else len(chunk) for chunk in records)
    return (records,), len(records)  # type: ignore[arg-type, return-value]


class _Frame:
    """A frame in the making: small pieces are joined, record data is kept as it is."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, *pieces: bytes) -> None:
        self.pieces += pieces

    def add_records(self, chunks: Sequence[Chunk], size: int) -> None:
        if size:
            self.close_pieces()
            self.chunks += chunks
            self.size += size

    def close_pieces(self) -> None:
        joined = b"".join(self.pieces)
        self.size += len(joined)
        self.chunks.append(joined)
        self.pieces = []

    def finished(self) -> list[Chunk]:
        self.close_pieces()
        first = self.chunks[0]
        if not isinstance(first, bytes):
            raise EncodingError("a frame that begins with records")
        self.chunks[0] = _INT32.pack(self.size) + first
        return [chunk for chunk in self.chunks if not isinstance(chunk, bytes) or chunk]


def _old_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[Any, Sequence[FetchedPartition]]],
    error: int,
    session_id: int,
    throttle_time_ms: int,
) -> list[Chunk]:
    frame = _Frame()
    if version < 7:
        frame.add(_HEAD_4.pack(correlation_id, throttle_time_ms, len(topics)))
    else:
        frame.add(_HEAD_7.pack(correlation_id, throttle_time_ms, error, session_id, len(topics)))
    for topic, results in topics:
        name = NAME_BYTES.get(topic) or learn_name_bytes(topic)
        frame.add(_INT16.pack(len(name)), name, _INT32.pack(len(results)))
        for index, code, high_watermark, stable, log_start, records, aborted, replica, _, _, _ in results:
            if version < 5:
                frame.add(_PARTITION_4.pack(index, code, high_watermark, stable))
            else:
                frame.add(_PARTITION_5.pack(index, code, high_watermark, stable, log_start))
            if aborted is None:
                frame.add(b"\xff\xff\xff\xff")
            else:
                frame.add(_INT32.pack(len(aborted)), *(_ABORTED.pack(*each) for each in aborted))
            if version > 10:
                frame.add(_INT32.pack(replica))
            chunks, size = _records(records)
            frame.add(_INT32.pack(size))
            frame.add_records(chunks, size)
    return frame.finished()


def _flexible_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[Any, Sequence[FetchedPartition]]],
    error: int,
    session_id: int,
    throttle_time_ms: int,
    node_endpoints: Sequence[NodeEndpoint],
) -> list[Chunk]:
    frame = _Frame()
    frame.add(
        _HEAD_12.pack(correlation_id, throttle_time_ms, error, session_id),
        write_uvarint(len(topics) + 1),
    )
    for topic, results in topics:
        frame.add(compact_topic(topic, version > 12), write_uvarint(len(results) + 1))
        for result in results:
            (
                index, code, high_watermark, stable, log_start, records, aborted, replica, diverging, leader, snapshot
            ) = result  # fmt: skip
            if aborted is None:
                frame.add(_PARTITION_12.pack(index, code, high_watermark, stable, log_start, 0, replica))
            else:
                frame.add(_PARTITION_5.pack(index, code, high_watermark, stable, log_start))
                frame.add(write_uvarint(len(aborted) + 1), *(_FLEXIBLE_ABORTED.pack(*each) for each in aborted))
                frame.add(_INT32.pack(replica))
            chunks, size = _records(records)
            frame.add(UVARINTS[size + 1] if size < 127 else write_uvarint(size + 1))
            if size:
                frame.add_records(chunks, size)
            if diverging is None and leader is None and snapshot is None:
                frame.add(b"\0")
            else:
                frame.add(_partition_tags(diverging, leader, snapshot))
        frame.add(b"\0")
    frame.add(encode_node_endpoints(node_endpoints) if version > 15 else b"\0")
    return frame.finished()


_NOWHERE: Final = (-1, -1)
"""Default of the three tagged pairs of a partition; one that has it is left out."""
_EPOCH_END = Layout(">BBiqx")
"""Tag, 13 bytes: epoch, end offset, no tags."""
_LEADER = Layout(">BBiix")
_SNAPSHOT = Layout(">BBqix")


def _partition_tags(
    diverging: tuple[int, int] | None, leader: tuple[int, int] | None, snapshot: tuple[int, int] | None
) -> bytes:
    found = []
    if diverging is not None and diverging != _NOWHERE:
        found.append(_EPOCH_END.pack(0, 13, *diverging))
    if leader is not None and leader != _NOWHERE:
        found.append(_LEADER.pack(1, 9, *leader))
    if snapshot is not None and snapshot != _NOWHERE:
        found.append(_SNAPSHOT.pack(2, 13, *snapshot))
    return UVARINTS[len(found)] + b"".join(found)
