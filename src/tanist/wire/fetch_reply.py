"""Fetch responses (key 1), versions 4-18, as a follower reads them; written by hand.

The records are views of the received frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct as Layout
from struct import error as struct_error
from typing import TypeAlias

from tanist.wire.errors import UnsupportedVersion, WireError
from tanist.wire.fast_path import (
    KNOWN_NAMES,
    NodeEndpoint,
    Topic,
    check_count,
    check_tag,
    learn_name,
    read_bytes,
    read_node_endpoints,
    read_tag,
    read_topic,
    skip_tags,
)
from tanist.wire.fetch_response import FIRST_VERSION, LAST_VERSION, FetchedPartition
from tanist.wire.primitives import read_uvarint


@dataclass(slots=True)
class FetchReply:
    """A Fetch response."""

    error: int = 0
    session_id: int = 0
    throttle_time_ms: int = 0
    topics: list[tuple[Topic, list[FetchedPartition]]] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


_tuple = tuple.__new__

_INT16 = Layout(">h")
_INT32 = Layout(">i")
_HEAD_4 = Layout(">iii")
"""Correlation id, throttle time, topics."""
_HEAD_7 = Layout(">iihii")
"""Also, before the topics: error, session id."""
_HEAD_12 = Layout(">ihi")
"""Throttle time, error, session id."""
_PARTITION_4 = Layout(">ihqqi")
"""Up to the number of aborted transactions."""
_PARTITION_5 = Layout(">ihqqqi")
_PARTITION_12 = Layout(">ihqqqB")
_REPLICA_AND_SIZE = Layout(">iB")
"""Preferred read replica, first byte of the records' length."""
_ABORTED = Layout(">qq")
_EPOCH_END = Layout(">iq")
_LEADER = Layout(">ii")
_SNAPSHOT = Layout(">qi")


def parse_fetch_response(frame: memoryview, version: int) -> FetchReply:
    """A response's frame, without its length prefix. The records are views of it. `WireError` if it is malformed."""
    if not FIRST_VERSION <= version <= LAST_VERSION:
        raise UnsupportedVersion(f"FetchResponse has versions {FIRST_VERSION} to {LAST_VERSION}, not {version}")
    try:
        reply, end = _parse_old(frame, version) if version < 12 else _parse_flexible(frame, version)
    except (struct_error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"FetchResponse version {version}: {error}") from error
    if end != len(frame):
        raise WireError(f"{len(frame) - end} bytes after FetchResponse version {version}")
    return reply


def _parse_old(frame: memoryview, version: int) -> tuple[FetchReply, int]:
    reply = FetchReply()
    end = len(frame)
    if version < 7:
        _, reply.throttle_time_ms, count = _HEAD_4.unpack_from(frame, 0)
        p = 12
    else:
        _, reply.throttle_time_ms, reply.error, reply.session_id, count = _HEAD_7.unpack_from(frame, 0)
        p = 18
    check_count("topics", count, 6, end - p)
    for _ in range(count):
        raw, p = read_bytes(frame, p + 2, _INT16.unpack_from(frame, p)[0])
        partitions = _INT32.unpack_from(frame, p)[0]
        p += 4
        check_count("partitions", partitions, 30, end - p)
        results = []
        for _ in range(partitions):
            log_start = replica = -1
            if version < 5:
                index, code, high_watermark, stable, count_aborted = _PARTITION_4.unpack_from(frame, p)
                p += 26
            else:
                index, code, high_watermark, stable, log_start, count_aborted = _PARTITION_5.unpack_from(frame, p)
                p += 34
            aborted = None
            if count_aborted != -1:
                check_count("aborted transactions", count_aborted, 16, end - p)
                aborted = [_ABORTED.unpack_from(frame, p + 16 * i) for i in range(count_aborted)]
                p += 16 * count_aborted
            if version > 10:
                replica = _INT32.unpack_from(frame, p)[0]
                p += 4
            size = _INT32.unpack_from(frame, p)[0]
            p += 4
            records, p = _take_records(frame, p, size)
            results.append(FetchedPartition(index, code, high_watermark, stable, log_start, records, aborted, replica))
        reply.topics.append((KNOWN_NAMES.get(raw) or learn_name(raw), results))
    return reply, p


def _parse_flexible(frame: memoryview, version: int) -> tuple[FetchReply, int]:
    reply = FetchReply()
    end = len(frame)
    p = skip_tags(frame, 4)
    reply.throttle_time_ms, reply.error, reply.session_id = _HEAD_12.unpack_from(frame, p)
    count, p = read_uvarint(frame, p + 10)
    count -= 1
    check_count("topics", count, 18 if version > 12 else 3, end - p)
    for _ in range(count):
        topic, p = read_topic(frame, p, version > 12)
        partitions, p = read_uvarint(frame, p)
        partitions -= 1
        check_count("partitions", partitions, 37, end - p)
        results = []
        for _ in range(partitions):
            index, code, high_watermark, stable, log_start, count_aborted = _PARTITION_12.unpack_from(frame, p)
            p += 31
            aborted = None
            if count_aborted:
                aborted, p = _read_aborted(frame, p - 1)
            replica, size = _REPLICA_AND_SIZE.unpack_from(frame, p)
            p += 5
            if size > 127:
                size, p = read_uvarint(frame, p - 1)
            start = p
            if size:
                p += size - 1
                if p > end:
                    raise WireError(f"records: length {size - 1}, {end - start} bytes left")
            diverging = leader = snapshot = None
            if frame[p]:
                diverging, leader, snapshot, after = _read_partition_tags(frame, p)
            else:
                after = p + 1
            result: FetchedPartition = _tuple(
                FetchedPartition,
                (
                    index, code, high_watermark, stable, log_start, frame[start:p], aborted, replica,
                    diverging, leader, snapshot,
                ),
            )  # fmt: skip
            results.append(result)
            p = after
        reply.topics.append((topic, results))
        p = skip_tags(frame, p)
    tags, p = read_uvarint(frame, p)
    for _ in range(tags):
        tag, begin, p = read_tag(frame, p)
        if tag == 0 and version > 15:
            reply.node_endpoints, after = read_node_endpoints(frame, begin)
            check_tag(after, p)
    return reply, p


def _read_aborted(frame: memoryview, p: int) -> tuple[list[tuple[int, int]], int]:
    count, p = read_uvarint(frame, p)
    count -= 1
    check_count("aborted transactions", count, 17, len(frame) - p)
    aborted = []
    for _ in range(count):
        aborted.append(_ABORTED.unpack_from(frame, p))
        p = skip_tags(frame, p + 16)
    return aborted, p


def _take_records(frame: memoryview, p: int, size: int) -> tuple[memoryview, int]:
    """The records as a view; null counts as none."""
    stop = p + max(size, 0)
    if size < -1 or stop > len(frame):
        raise WireError(f"records: length {size}, {len(frame) - p} bytes left")
    return frame[p:stop], stop


_Pair: TypeAlias = tuple[int, int]


def _read_partition_tags(frame: memoryview, p: int) -> tuple[_Pair | None, _Pair | None, _Pair | None, int]:
    found: list[_Pair | None] = [None, None, None]
    layouts = (_EPOCH_END, _LEADER, _SNAPSHOT)
    tags, p = read_uvarint(frame, p)
    for _ in range(tags):
        tag, begin, p = read_tag(frame, p)
        if tag < 3:
            layout = layouts[tag]
            found[tag] = layout.unpack_from(frame, begin)
            check_tag(skip_tags(frame, begin + layout.size), p)
    return found[0], found[1], found[2], p
