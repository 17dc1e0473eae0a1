"""Fetch requests (key 1), versions 4-18, of consumers and followers; written by hand.

Sessions from 7, flexible from 12, topic ids from 13, the replica's state (id and broker epoch) as a tagged field from
15.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct as Layout
from struct import error as struct_error
from typing import Final, NamedTuple
from uuid import UUID

from tanist.wire.errors import EncodingError, UnsupportedVersion, WireError
from tanist.wire.fast_path import (
    KNOWN_NAMES,
    MAX_TOPIC_NAME,
    NAME_BYTES,
    ReadersByLength,
    Topic,
    check_count,
    check_tag,
    compact_string,
    compact_topic,
    learn_name,
    learn_name_bytes,
    read_bytes,
    read_compact_string,
    read_tag,
    read_topic,
    skip_tags,
)
from tanist.wire.primitives import KNOWN_UUIDS, UVARINTS, learn_uuid, read_uvarint, write_uvarint
from tanist.wire.schema import ZERO_UUID

FIRST_VERSION: Final = 4
LAST_VERSION: Final = 18
UNKNOWN_HIGH_WATERMARK: Final = 2**63 - 1


class FetchTarget(NamedTuple):
    """Where in a partition to read."""

    partition: int
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    max_bytes: int = 0
    replica_directory_id: UUID = ZERO_UUID
    high_watermark: int = UNKNOWN_HIGH_WATERMARK


@dataclass(slots=True)
class FetchCall:
    """A Fetch request."""

    replica_id: int = -1
    replica_epoch: int = -1
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 0x7FFFFFFF
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[tuple[Topic, list[FetchTarget]]] = field(default_factory=list)
    forgotten: list[tuple[Topic, list[int]]] = field(default_factory=list)
    rack_id: str = ""
    cluster_id: str | None = None


_INT16 = Layout(">h")
_INT32 = Layout(">i")
_INT64 = Layout(">q")

_new = object.__new__
_tuple = tuple.__new__

# Requests. By version: the fields before the topics, and the fields of a partition.

_HEAD_4 = Layout(">iiiib")
"""Replica id, longest wait, least bytes, most bytes, isolation level."""
_HEAD_7 = Layout(">iiiibii")
"""Also: session id, session epoch."""
_HEAD_15 = Layout(">iiibii")
"""Without the replica id."""
_TARGET_4 = Layout(">iqi")
"""Partition, offset, most bytes."""
_TARGET_5 = Layout(">iqqi")
"""Also, before the last: log start offset."""
_TARGET_9 = Layout(">iiqqi")
"""Also, as the second: current leader epoch."""
_TARGET_12 = Layout(">iiqiqiB")
"""Also, after the offset: last fetched epoch; at the end the number of tags."""

_TARGET_18 = Layout(">iiqiqiBBBq")
"""Also, as the only tagged field: the high watermark."""

# A consumer's usual request in one go: one topic, one partition, nothing forgotten.
_USUAL_HEAD_4 = Layout(">iiiibih").unpack_from
"""Up to the length of the topic's name."""
_USUAL_4 = ReadersByLength(">%dsiiqi")
_USUAL_5 = ReadersByLength(">%dsiiqqi")
_USUAL_HEAD_7 = Layout(">iiiibiiih").unpack_from
_USUAL_7 = ReadersByLength(">%dsiiqqii")
_USUAL_9 = ReadersByLength(">%dsiiiqqii")
_USUAL_HEAD_12 = Layout(">iiiibiiBB").unpack_from
_USUAL_12 = ReadersByLength(">%dsBiiqiqiHBB")
"""Up to the length of the rack: tags of partition and topic, forgotten topics."""
_ONLY_REPLICA_STATE = Layout(">BBBiqB").unpack_from
"""All tagged fields of a follower's request: replica id and epoch."""
_USUAL_13 = Layout(">iiiibiiB16sBiiqiqiHBB")
_USUAL_15 = Layout(">iiibiiB16sBiiqiqiHBB")


def parse_fetch(frame: memoryview, offset: int, version: int) -> FetchCall:
    """The body of a Fetch request that begins at `offset` of its frame. `WireError` if it is malformed."""
    if not FIRST_VERSION <= version <= LAST_VERSION:
        raise UnsupportedVersion(f"Fetch has versions {FIRST_VERSION} to {LAST_VERSION}, not {version}")
    try:
        call = _parse_usual(frame, offset, version)
    except (struct_error, IndexError):
        call = None  # too short for the usual shape; the general path finds the fault
    if call is not None:
        return call
    try:
        if version < 12:
            return _parse_old(frame, offset, version)
        return _parse_flexible(frame, offset, version)
    except (struct_error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"Fetch version {version}: {error}") from error


def _parse_usual(frame: memoryview, p: int, version: int) -> FetchCall | None:
    """The request if it is for one partition and has nothing unusual; None if it is not."""
    call: FetchCall = _new(FetchCall)
    call.replica_id = call.replica_epoch = -1  # the code below overwrites these where there are such fields
    last_epoch = epoch = -1
    topic: Topic
    if version > 12:
        if version > 14:
            (
                call.max_wait_ms, call.min_bytes, call.max_bytes, call.isolation_level, call.session_id,
                call.session_epoch, topics, raw, partitions,
                partition, epoch, start, last_epoch, log_start, size, tags, forgotten, rack,
            ) = _USUAL_15.unpack_from(frame, p)  # fmt: skip
            p += _USUAL_15.size
        else:
            (
                call.replica_id, call.max_wait_ms, call.min_bytes, call.max_bytes, call.isolation_level,
                call.session_id, call.session_epoch, topics, raw, partitions,
                partition, epoch, start, last_epoch, log_start, size, tags, forgotten, rack,
            ) = _USUAL_13.unpack_from(frame, p)  # fmt: skip
            p += _USUAL_13.size
        if topics != 2 or partitions != 2 or tags or forgotten != 1 or rack != 1:
            return None
        if frame[p]:
            count, tag, length, call.replica_id, call.replica_epoch, tags = _ONLY_REPLICA_STATE(frame, p)
            if count != 1 or tag != 1 or length != 13 or tags or version < 15:
                return None
        topic = KNOWN_UUIDS.get(raw) or learn_uuid(raw)
    elif version == 12:
        (
            call.replica_id, call.max_wait_ms, call.min_bytes, call.max_bytes, call.isolation_level,
            call.session_id, call.session_epoch, topics, n,
        ) = _USUAL_HEAD_12(frame, p)  # fmt: skip
        if topics != 2 or not 1 < n < 128:
            return None
        (
            raw, partitions, partition, epoch, start, last_epoch, log_start, size, tags, forgotten, rack
        ) = _USUAL_12[n - 1](frame, p + 27)  # fmt: skip
        if partitions != 2 or tags or forgotten != 1 or rack != 1 or frame[p + 63 + n]:
            return None
        topic = KNOWN_NAMES.get(raw) or learn_name(raw)
    elif version > 6:
        (
            call.replica_id, call.max_wait_ms, call.min_bytes, call.max_bytes, call.isolation_level,
            call.session_id, call.session_epoch, topics, n,
        ) = _USUAL_HEAD_7(frame, p)  # fmt: skip
        if topics != 1 or not 0 < n <= MAX_TOPIC_NAME:
            return None
        if version > 8:
            raw, partitions, partition, epoch, start, log_start, size, forgotten = _USUAL_9[n](frame, p + 31)
            if version > 10 and _INT16.unpack_from(frame, p + 67 + n)[0]:
                return None
        else:
            raw, partitions, partition, start, log_start, size, forgotten = _USUAL_7[n](frame, p + 31)
        if partitions != 1 or forgotten:
            return None
        topic = KNOWN_NAMES.get(raw) or learn_name(raw)
    else:
        (
            call.replica_id, call.max_wait_ms, call.min_bytes, call.max_bytes, call.isolation_level, topics, n
        ) = _USUAL_HEAD_4(frame, p)  # fmt: skip
        if topics != 1 or not 0 < n <= MAX_TOPIC_NAME:
            return None
        if version > 4:
            raw, partitions, partition, start, log_start, size = _USUAL_5[n](frame, p + 23)
        else:
            raw, partitions, partition, start, size = _USUAL_4[n](frame, p + 23)
            log_start = -1
        if partitions != 1:
            return None
        call.session_id = 0
        call.session_epoch = -1
        topic = KNOWN_NAMES.get(raw) or learn_name(raw)
    target: FetchTarget = _tuple(
        FetchTarget, (partition, epoch, start, last_epoch, log_start, size, ZERO_UUID, UNKNOWN_HIGH_WATERMARK)
    )
    call.topics = [(topic, [target])]
    call.forgotten = []
    call.rack_id = ""
    call.cluster_id = None
    return call


def _parse_old(frame: memoryview, p: int, version: int) -> FetchCall:
    call = FetchCall()
    end = len(frame)
    (
        call.replica_id, call.max_wait_ms, call.min_bytes, call.max_bytes, call.isolation_level
    ) = _HEAD_4.unpack_from(frame, p)  # fmt: skip
    p += 17
    if version > 6:
        call.session_id, call.session_epoch = _TWO.unpack_from(frame, p)
        p += 8
    layout = _TARGET_4 if version < 5 else _TARGET_5 if version < 9 else _TARGET_9
    count = _INT32.unpack_from(frame, p)[0]
    p += 4
    check_count("topics", count, 6, end - p)
    for _ in range(count):
        raw, p = read_bytes(frame, p + 2, _INT16.unpack_from(frame, p)[0])
        partitions = _INT32.unpack_from(frame, p)[0]
        p += 4
        check_count("partitions", partitions, layout.size, end - p)
        targets = []
        for _ in range(partitions):
            values = layout.unpack_from(frame, p)
            p += layout.size
            if version > 8:
                partition, epoch, start, log_start, size = values
            elif version > 4:
                (partition, start, log_start, size), epoch = values, -1
            else:
                (partition, start, size), epoch, log_start = values, -1, -1
            targets.append(FetchTarget(partition, epoch, start, -1, log_start, size))
        call.topics.append((KNOWN_NAMES.get(raw) or learn_name(raw), targets))
    if version > 6:
        count = _INT32.unpack_from(frame, p)[0]
        p += 4
        check_count("forgotten topics", count, 6, end - p)
        for _ in range(count):
            raw, p = read_bytes(frame, p + 2, _INT16.unpack_from(frame, p)[0])
            partitions = _INT32.unpack_from(frame, p)[0]
            p += 4
            check_count("forgotten partitions", partitions, 4, end - p)
            forgotten = list(Layout(f">{partitions}i").unpack_from(frame, p))
            p += 4 * partitions
            call.forgotten.append((KNOWN_NAMES.get(raw) or learn_name(raw), forgotten))
    if version > 10:
        raw, p = read_bytes(frame, p + 2, _INT16.unpack_from(frame, p)[0])
        call.rack_id = raw.decode()
    return call


def _parse_flexible(frame: memoryview, p: int, version: int) -> FetchCall:
    call = FetchCall()
    end = len(frame)
    read_18 = _TARGET_18.unpack_from
    if version < 15:
        call.replica_id = _INT32.unpack_from(frame, p)[0]
        p += 4
    (
        call.max_wait_ms, call.min_bytes, call.max_bytes, call.isolation_level, call.session_id, call.session_epoch
    ) = _HEAD_15.unpack_from(frame, p)  # fmt: skip
    count, p = read_uvarint(frame, p + 21)
    count -= 1
    check_count("topics", count, 18 if version > 12 else 3, end - p)
    for _ in range(count):
        topic, p = read_topic(frame, p, version > 12)
        partitions, p = read_uvarint(frame, p)
        partitions -= 1
        check_count("partitions", partitions, 33, end - p)
        targets = []
        # A follower's partitions have the high watermark as their only tagged field.
        followers = version > 17 and p + 43 * partitions <= end
        for _ in range(partitions):
            if followers:
                partition, epoch, start, last_epoch, log_start, size, tags, tag, length, mark = read_18(frame, p)
                if tags == 1 and tag == 1 and length == 8:
                    p += 43
                    targets.append(
                        _tuple(FetchTarget, (partition, epoch, start, last_epoch, log_start, size, ZERO_UUID, mark))
                    )
                    continue
                followers = False
            partition, epoch, start, last_epoch, log_start, size, tags = _TARGET_12.unpack_from(frame, p)
            p += 33
            directory, high_watermark = ZERO_UUID, UNKNOWN_HIGH_WATERMARK
            if tags:
                tags, p = read_uvarint(frame, p - 1)
                for _ in range(tags):
                    tag, begin, p = read_tag(frame, p)
                    if tag == 0 and version > 16:
                        raw, after = read_bytes(frame, begin, 16)
                        directory = KNOWN_UUIDS.get(raw) or learn_uuid(raw)
                    elif tag == 1 and version > 17:
                        high_watermark = _INT64.unpack_from(frame, begin)[0]
                        after = begin + 8
                    else:
                        continue
                    check_tag(after, p)
            targets.append(FetchTarget(partition, epoch, start, last_epoch, log_start, size, directory, high_watermark))
        call.topics.append((topic, targets))
        p = skip_tags(frame, p)
    count, p = read_uvarint(frame, p)
    count -= 1
    check_count("forgotten topics", count, 18 if version > 12 else 3, end - p)
    for _ in range(count):
        topic, p = read_topic(frame, p, version > 12)
        partitions, p = read_uvarint(frame, p)
        partitions -= 1
        check_count("forgotten partitions", partitions, 4, end - p)
        call.forgotten.append((topic, list(Layout(f">{partitions}i").unpack_from(frame, p))))
        p = skip_tags(frame, p + 4 * partitions)
    rack, p = read_compact_string(frame, p)
    if rack is None:
        raise WireError("rack id is null")
    call.rack_id = rack
    if version > 14 and end - p == 16:
        tags, tag, length, call.replica_id, call.replica_epoch, inner_tags = _ONLY_REPLICA_STATE(frame, p)
        if tags == 1 and tag == 1 and length == 13 and inner_tags == 0:
            return call
        call.replica_id = call.replica_epoch = -1
    tags, p = read_uvarint(frame, p)
    for _ in range(tags):
        tag, begin, p = read_tag(frame, p)
        if tag == 0:
            call.cluster_id, after = read_compact_string(frame, begin)
        elif tag == 1 and version > 14:
            call.replica_id, call.replica_epoch = _REPLICA_STATE.unpack_from(frame, begin)
            after = skip_tags(frame, begin + 12)
        else:
            continue
        check_tag(after, p)
    return call


_TWO = Layout(">ii")
_REPLICA_STATE = Layout(">iq")
_REQUEST_HEADER = Layout(">hhih")


def encode_fetch_request(version: int, correlation_id: int, client_id: str | None, call: FetchCall) -> bytes:
    """A whole frame, length prefix included."""
    if not FIRST_VERSION <= version <= LAST_VERSION:
        raise EncodingError(f"Fetch has versions {FIRST_VERSION} to {LAST_VERSION}, not {version}")
    client = b"" if client_id is None else client_id.encode()
    try:
        chunks = [
            b"",
            _REQUEST_HEADER.pack(1, version, correlation_id, -1 if client_id is None else len(client)),
            client,
        ]
        if version < 12:
            _write_old_request(version, call, chunks)
        else:
            _write_flexible_request(version, call, chunks)
        chunks[0] = _INT32.pack(sum(map(len, chunks)))
    except (struct_error, AttributeError, TypeError, UnicodeEncodeError) as error:
        raise EncodingError(f"Fetch version {version}: {error}") from error
    return b"".join(chunks)


def _write_old_request(version: int, call: FetchCall, chunks: list[bytes]) -> None:
    chunks.append(_HEAD_4.pack(call.replica_id, call.max_wait_ms, call.min_bytes, call.max_bytes, call.isolation_level))
    if version > 6:
        chunks.append(_TWO.pack(call.session_id, call.session_epoch))
    chunks.append(_INT32.pack(len(call.topics)))
    for topic, targets in call.topics:
        name = NAME_BYTES.get(topic) or learn_name_bytes(topic)  # type: ignore[arg-type]
        chunks += [_INT16.pack(len(name)), name, _INT32.pack(len(targets))]
        for partition, epoch, start, _, log_start, size, _, _ in targets:
            if version > 8:
                chunks.append(_TARGET_9.pack(partition, epoch, start, log_start, size))
            elif version > 4:
                chunks.append(_TARGET_5.pack(partition, start, log_start, size))
            else:
                chunks.append(_TARGET_4.pack(partition, start, size))
    if version > 6:
        chunks.append(_INT32.pack(len(call.forgotten)))
        for topic, partitions in call.forgotten:
            name = NAME_BYTES.get(topic) or learn_name_bytes(topic)  # type: ignore[arg-type]
            chunks += [_INT16.pack(len(name)), name, Layout(f">i{len(partitions)}i").pack(len(partitions), *partitions)]
    if version > 10:
        rack = call.rack_id.encode()
        chunks += [_INT16.pack(len(rack)), rack]


def _write_flexible_request(version: int, call: FetchCall, chunks: list[bytes]) -> None:
    chunks.append(b"\0")
    if version < 15:
        chunks.append(_INT32.pack(call.replica_id))
    chunks += [
        _HEAD_15.pack(
            call.max_wait_ms, call.min_bytes, call.max_bytes, call.isolation_level, call.session_id, call.session_epoch
        ),
        write_uvarint(len(call.topics) + 1),
    ]
    for topic, targets in call.topics:
        chunks += [compact_topic(topic, version > 12), write_uvarint(len(targets) + 1)]
        for partition, epoch, start, last_epoch, log_start, size, directory, high_watermark in targets:
            if version > 17 and directory is ZERO_UUID and high_watermark != UNKNOWN_HIGH_WATERMARK:
                chunks.append(
                    _TARGET_18.pack(partition, epoch, start, last_epoch, log_start, size, 1, 1, 8, high_watermark)
                )
                continue
            tags = b""
            count = 0
            if version > 16 and directory != ZERO_UUID:
                tags = b"\x00\x10" + directory.bytes
                count = 1
            if version > 17 and high_watermark != UNKNOWN_HIGH_WATERMARK:
                tags += b"\x01\x08" + _INT64.pack(high_watermark)
                count += 1
            chunks += [_TARGET_12.pack(partition, epoch, start, last_epoch, log_start, size, count), tags]
        chunks.append(b"\0")
    chunks.append(write_uvarint(len(call.forgotten) + 1))
    for topic, partitions in call.forgotten:
        chunks += [
            compact_topic(topic, version > 12),
            write_uvarint(len(partitions) + 1),
            Layout(f">{len(partitions)}i").pack(*partitions),
            b"\0",
        ]
    chunks.append(compact_string(call.rack_id))
    tags = b""
    count = 0
    if call.cluster_id is not None:
        cluster = compact_string(call.cluster_id)
        tags = b"\x00" + write_uvarint(len(cluster)) + cluster
        count = 1
    if version > 14 and (call.replica_id != -1 or call.replica_epoch != -1):
        tags += b"\x01\x0d" + _REPLICA_STATE.pack(call.replica_id, call.replica_epoch) + b"\0"
        count += 1
    chunks += [UVARINTS[count], tags]
