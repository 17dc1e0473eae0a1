"""Produce (key 0), versions 3-13; written by hand.

A request is not turned into objects but into positions: for each partition the bytes of the frame that are its records.
The caller appends them without a copy. Flexible from version 9, topic ids instead of names from 13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from struct import Struct as Layout
from struct import error as struct_error
from typing import Any, Final, NamedTuple

from tanist.wire.batch import BATCH_LENGTH_AT, HEADER_BYTES, LEADER_EPOCH_AT, LENGTH_OVERHEAD, MAGIC, MAGIC_AT
from tanist.wire.errors import EncodingError, UnsupportedVersion, WireError
from tanist.wire.fast_path import (
    KNOWN_NAMES,
    MAX_TOPIC_NAME,
    NAME_BYTES,
    NodeEndpoint,
    PackersByLength,
    ReadersByLength,
    Topic,
    check_count,
    compact_string,
    encode_node_endpoints,
    learn_name,
    learn_name_bytes,
    read_bytes,
    skip_tags,
)
from tanist.wire.primitives import (
    KNOWN_UUIDS,
    learn_uuid,
    read_uvarint,
    write_uvarint,
)

__all__ = ["NodeEndpoint", "ProduceCall", "ProduceResult", "encode_produce_response", "parse_produce"]

FIRST_VERSION: Final = 3
LAST_VERSION: Final = 13


@dataclass(slots=True)
class ProduceCall:
    """A Produce request."""

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topics: list[tuple[Topic, list[tuple[int, int, int]]]] = field(default_factory=list)
    """By topic: (partition, start, end), the frame's bytes that are its records; start and end are -1 for null."""


def first_batch_bytes(frame: memoryview, start: int, end: int) -> int:
    """The size of the first batch of the records at [start, end); 0 if it is torn, or not of magic 2."""
    if end - start < HEADER_BYTES or frame[start + MAGIC_AT] != MAGIC:
        return 0
    size = LENGTH_OVERHEAD + int.from_bytes(
        frame[start + BATCH_LENGTH_AT : start + LEADER_EPOCH_AT], "big", signed=True
    )
    return size if HEADER_BYTES <= size <= end - start else 0


def is_one_batch(frame: memoryview, start: int, end: int) -> bool:
    """Whether the records at [start, end) are one whole batch of magic 2, by its head."""
    return 0 < first_batch_bytes(frame, start, end) == end - start


class ProduceResult(NamedTuple):
    """The result of one partition's append."""

    partition: int
    error: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    """(index of the record in the request's batch, message)."""
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None
    """(leader id, leader epoch), for a client that asked another broker (KIP-951)."""


# Requests

_HEAD = Layout(">hhiih").unpack_from
"""Transactional id's length, acks, timeout, topics, length of the first name: 14 bytes if there is no such id."""
_TOPIC = ReadersByLength(">%dsiii")
"""Name, partitions, the first one's index and its records' length."""
_FLEXIBLE_HEAD = Layout(">BhiBB").unpack_from
_FLEXIBLE_TOPIC = ReadersByLength(">%dsBi")
_ID_HEAD = Layout(">BhiB16sBi").unpack_from
"""All of a request up to the length of the first partition's records."""
_END = Layout(">BH").unpack_from
"""Tag counts of partition, topic and request, as they follow the records of the last partition."""
_NO_TAGS: Final = (0, 0)

_INT16 = Layout(">h").unpack_from
_INT32 = Layout(">i").unpack_from
_ACKS = Layout(">hi").unpack_from
_PARTITION = Layout(">ii").unpack_from


def parse_single_produce(frame: memoryview, offset: int, version: int) -> tuple[int, int, Topic, int, int, int] | None:
    """(acks, timeout, topic, partition, start, end of its records) of a request in the usual shape.

    None for every other shape and for malformed requests: `parse_produce` reads or refuses those.
    """
    topic: Topic
    try:
        if version < 9:
            length, acks, timeout_ms, topics, n = _HEAD(frame, offset)
            if length == -1 and topics == 1 and 0 < n <= MAX_TOPIC_NAME:
                raw, partitions, index, size = _TOPIC[n](frame, offset + 14)
                start = offset + 26 + n
                end = start + size
                if partitions == 1 and size >= 0 and end <= len(frame) and version > 2:
                    return acks, timeout_ms, KNOWN_NAMES.get(raw) or learn_name(raw), index, start, end
            return None
        if version > 12:
            length, acks, timeout_ms, topics, raw, partitions, index = _ID_HEAD(frame, offset)
            start = offset + 29
        else:
            length, acks, timeout_ms, topics, n = _FLEXIBLE_HEAD(frame, offset)
            if not 1 < n < 128:
                return None
            raw, partitions, index = _FLEXIBLE_TOPIC[n - 1](frame, offset + 9)
            start = offset + 13 + n
        if length == 0 and topics == 2 and partitions == 2:
            size = frame[start]
            start += 1
            if size > 127:
                more = frame[start]
                if more < 128:
                    size += (more - 1) << 7
                    start += 1
                else:
                    size, start = read_uvarint(frame, start - 1)
            end = start + size - 1
            if size and _END(frame, end) == _NO_TAGS and version <= LAST_VERSION:
                if version > 12:
                    topic = KNOWN_UUIDS.get(raw) or learn_uuid(raw)
                else:
                    topic = KNOWN_NAMES.get(raw) or learn_name(raw)
                return acks, timeout_ms, topic, index, start, end
    except (struct_error, IndexError, WireError):
        pass  # the general path finds the fault
    return None


def parse_produce(frame: memoryview, offset: int, version: int) -> ProduceCall:
    """The body of a Produce request that begins at `offset` of its frame. `WireError` if it is malformed."""
    if not FIRST_VERSION <= version <= LAST_VERSION:
        raise UnsupportedVersion(f"Produce has versions {FIRST_VERSION} to {LAST_VERSION}, not {version}")
    try:
        if version < 9:
            return _parse_old(frame, offset)
        return _parse_flexible(frame, offset, version > 12)
    except (struct_error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"Produce version {version}: {error}") from error


def _parse_old(frame: memoryview, p: int) -> ProduceCall:
    call = ProduceCall()
    end = len(frame)
    length = _INT16(frame, p)[0]
    p += 2
    if length != -1:
        raw, p = read_bytes(frame, p, length)
        call.transactional_id = raw.decode()
    call.acks, call.timeout_ms = _ACKS(frame, p)
    topics = _INT32(frame, p + 6)[0]
    p += 10
    check_count("topics", topics, 6, end - p)
    for _ in range(topics):
        raw, p = read_bytes(frame, p + 2, _INT16(frame, p)[0])
        partitions = _INT32(frame, p)[0]
        p += 4
        check_count("partitions", partitions, 8, end - p)
        found: list[tuple[int, int, int]] = []
        for _ in range(partitions):
            index, size = _PARTITION(frame, p)
            p += 8
            if size == -1:
                found.append((index, -1, -1))
                continue
            start = p
            p += size
            if size < 0 or p > end:
                raise WireError(f"records: length {size}, {end - start} bytes left")
            found.append((index, start, p))
        call.topics.append((KNOWN_NAMES.get(raw) or learn_name(raw), found))
    return call


def _parse_flexible(frame: memoryview, p: int, by_id: bool) -> ProduceCall:
    call = ProduceCall()
    end = len(frame)
    length, p = read_uvarint(frame, p)
    if length:
        raw, p = read_bytes(frame, p, length - 1)
        call.transactional_id = raw.decode()
    call.acks, call.timeout_ms = _ACKS(frame, p)
    topics, p = read_uvarint(frame, p + 6)
    topics -= 1
    check_count("topics", topics, 18 if by_id else 3, end - p)
    for _ in range(topics):
        topic: Topic
        if by_id:
            raw, p = read_bytes(frame, p, 16)
            topic = KNOWN_UUIDS.get(raw) or learn_uuid(raw)
        else:
            length, p = read_uvarint(frame, p)
            raw, p = read_bytes(frame, p, length - 1)
            topic = KNOWN_NAMES.get(raw) or learn_name(raw)
        partitions, p = read_uvarint(frame, p)
        partitions -= 1
        check_count("partitions", partitions, 6, end - p)
        found: list[tuple[int, int, int]] = []
        for _ in range(partitions):
            index = _INT32(frame, p)[0]
            size, p = read_uvarint(frame, p + 4)
            if size == 0:
                found.append((index, -1, -1))
            else:
                start = p
                p += size - 1
                if p > end:
                    raise WireError(f"records: length {size - 1}, {end - start} bytes left")
                found.append((index, start, p))
            p = skip_tags(frame, p)
        call.topics.append((topic, found))
        p = skip_tags(frame, p)
    skip_tags(frame, p)
    return call


# Responses. One topic and one partition without errors are one pack:
# length, correlation id, [header tags], topics, name, partitions,
# partition: index, error, base offset, append time, log start offset, ...; throttle time

_ANSWER_3 = PackersByLength(">iiih%dsiihqqi")
_ANSWER_5 = PackersByLength(">iiih%dsiihqqqi")
_ANSWER_8 = PackersByLength(">iiih%dsiihqqqihi")
"""Also: no record errors, no message."""
_ANSWER_9 = PackersByLength(">iixBB%dsBihqqqBxxxix")
"""Also: no message, tags of partition and topic; at the end the response's."""
_ANSWER_13 = Layout(">iixB16sBihqqqBxxxix")
_BODY_SIZE_13: Final = _ANSWER_13.size - 4

_HEAD_OLD = Layout(">ii")
_HEAD_FLEXIBLE = Layout(">ix")
_PARTITION_3 = Layout(">ihqq")
_PARTITION_5 = Layout(">ihqqq")
_LEADER = Layout(">BBBiix")
"""One tagged field, number 0, 9 bytes: leader id, leader epoch, no tags."""
_NUMBER = Layout(">i")
_LENGTH = Layout(">h")


def encode_appended(
    version: int, correlation_id: int, topic: Topic, index: int, base_offset: int, log_start_offset: int
) -> bytes:
    """The answer to a request that `parse_single_produce` has read, if it was appended: a whole frame, length prefix
    included.
    """
    if version > 8:
        pack, size, middle = _APPENDED.get(topic) or _learn_appended(topic)
        return pack(size, correlation_id, middle, index, base_offset, -1, log_start_offset, 1)
    return encode_produce_response(
        version, correlation_id, [(topic, [ProduceResult(index, 0, base_offset, -1, log_start_offset)])]
    )


_APPENDED_PATTERN: Final = ">iix%dsixxqqqBxxxxxxxx"
"""Length, correlation id, no tags, `_APPENDED`'s bytes, index, no error, base offset, append time, log start offset, no
record errors; no message, no tags of partition and topic, no throttling, no tags."""
_APPENDED: Final[dict[Topic, tuple[Callable[..., bytes], int, bytes]]] = {}
"""By topic: the packer of an answer from version 9 on, its length, and the bytes for "this topic, one partition" in it.
Ask with `_APPENDED.get(topic) or _learn_appended(topic)`.
"""
_APPENDED_MAX: Final = 20_000


def _learn_appended(topic: Topic) -> tuple[Callable[..., bytes], int, bytes]:
    middle = b"\x02" + (compact_string(topic) if isinstance(topic, str) else topic.bytes) + b"\x02"
    layout = Layout(_APPENDED_PATTERN % len(middle))
    if len(_APPENDED) >= _APPENDED_MAX:
        _APPENDED.clear()
    found = _APPENDED[topic] = (layout.pack, layout.size - 4, middle)
    return found


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[Topic, Sequence[ProduceResult]]],
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """A whole frame, length prefix included."""
    if not FIRST_VERSION <= version <= LAST_VERSION:
        raise EncodingError(f"ProduceResponse has versions {FIRST_VERSION} to {LAST_VERSION}, not {version}")
    try:
        if len(topics) == 1 and not node_endpoints:
            topic, results = topics[0]
            if len(results) == 1:
                index, error, base, time_ms, start, record_errors, message, leader = results[0]
                if not record_errors and message is None and leader is None:
                    if version > 12:
                        return _ANSWER_13.pack(
                            _BODY_SIZE_13, correlation_id, 2, topic.bytes, 2,  # type: ignore[union-attr]
                            index, error, base, time_ms, start, 1, throttle_time_ms,
                        )  # fmt: skip
                    name = NAME_BYTES.get(topic) or learn_name_bytes(topic)  # type: ignore[arg-type]
                    n = len(name)
                    if version > 8:
                        if n < 127:
                            pack, size = _ANSWER_9[n]
                            return pack(
                                size - 4, correlation_id, 2, n + 1, name, 2,
                                index, error, base, time_ms, start, 1, throttle_time_ms,
                            )  # fmt: skip
                    elif n <= MAX_TOPIC_NAME:
                        if version == 8:
                            pack, size = _ANSWER_8[n]
                            return pack(
                                size - 4, correlation_id, 1, n, name, 1,
                                index, error, base, time_ms, start, 0, -1, throttle_time_ms,
                            )  # fmt: skip
                        if version > 4:
                            pack, size = _ANSWER_5[n]
                            return pack(
                                size - 4, correlation_id, 1, n, name, 1,
                                index, error, base, time_ms, start, throttle_time_ms,
                            )  # fmt: skip
                        pack, size = _ANSWER_3[n]
                        return pack(
                            size - 4, correlation_id, 1, n, name, 1, index, error, base, time_ms, throttle_time_ms
                        )
        chunks = _old(version, correlation_id, topics) if version < 9 else _flexible(version, correlation_id, topics)
        chunks.append(_NUMBER.pack(throttle_time_ms))
        if version > 8:
            chunks.append(encode_node_endpoints(node_endpoints) if version > 9 else b"\0")
        chunks[0] = _NUMBER.pack(sum(map(len, chunks)))
    except (struct_error, AttributeError, TypeError, UnicodeEncodeError) as problem:
        raise EncodingError(f"ProduceResponse version {version}: {problem}") from problem
    return b"".join(chunks)


def _old(version: int, correlation_id: int, topics: Sequence[tuple[Any, Sequence[ProduceResult]]]) -> list[bytes]:
    chunks = [b"", _HEAD_OLD.pack(correlation_id, len(topics))]
    for topic, results in topics:
        name = NAME_BYTES.get(topic) or learn_name_bytes(topic)
        chunks += [_LENGTH.pack(len(name)), name, _NUMBER.pack(len(results))]
        for index, error, base, time_ms, start, record_errors, message, _ in results:
            if version < 5:
                chunks.append(_PARTITION_3.pack(index, error, base, time_ms))
                continue
            chunks.append(_PARTITION_5.pack(index, error, base, time_ms, start))
            if version == 8:
                chunks.append(_NUMBER.pack(len(record_errors)))
                for record, text in record_errors:
                    chunks += [_NUMBER.pack(record), _string(text)]
                chunks.append(_string(message))
    return chunks


def _string(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    raw = text.encode()
    return _LENGTH.pack(len(raw)) + raw


def _flexible(version: int, correlation_id: int, topics: Sequence[tuple[Any, Sequence[ProduceResult]]]) -> list[bytes]:
    chunks = [b"", _HEAD_FLEXIBLE.pack(correlation_id), write_uvarint(len(topics) + 1)]
    for topic, results in topics:
        chunks.append(topic.bytes if version > 12 else compact_string(topic))
        chunks.append(write_uvarint(len(results) + 1))
        for index, error, base, time_ms, start, record_errors, message, leader in results:
            chunks += [_PARTITION_5.pack(index, error, base, time_ms, start), write_uvarint(len(record_errors) + 1)]
            for record, text in record_errors:
                chunks += [_NUMBER.pack(record), compact_string(text), b"\0"]
            chunks.append(compact_string(message))
            if leader is None or version < 10 or leader == (-1, -1):
                chunks.append(b"\0")
            else:
                chunks.append(_LEADER.pack(1, 0, 9, *leader))
        chunks.append(b"\0")
    return chunks
