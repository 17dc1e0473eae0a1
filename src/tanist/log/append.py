"""The checks before an append: a leader's of a client's batches, and a follower's of its leader's.

Owns the checks and their order, which is Apache Kafka 4's, and the answer `AppendResult`. Header checks and the CRC
need no record to be decoded; a compacted topic's records are decoded, to find those without a key. Nothing here
changes a log, or the bytes: a refused batch leaves no trace.

Deliberate differences from Apache, both for the sake of not decoding records: timestamps are checked, and believed,
as the header states them (Apache checks each record, and corrects the header); and bytes after the last whole batch
are an error, where Apache cuts them off.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tanist.log.config import LogConfig
from tanist.wire.batch import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    NewRecord,
    decode_batch,
    encode_batch,
)
from tanist.wire.compression import Compression
from tanist.wire.crc import crc32c
from tanist.wire.errors import ErrorCode, WireError

_COMPRESSION_MAX: Final = max(Compression)
_RECORD_ERRORS_MAX: Final = 1000

UNPLACED: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)  # fmt: skip
"""Refusals with which a producer does not hear where the log begins, as from Apache Kafka."""


class AppendResult(NamedTuple):
    """The result of an append.

    A named tuple, because one is made for every produce: a frozen dataclass costs three
    times as much.
    """

    error: int = 0
    first_offset: int = -1
    last_offset: int = -1
    append_time_ms: int = -1
    """-1 unless the topic's timestamps are of the append."""
    duplicate: bool = False
    """Nothing was appended; the offsets are those of the batch that this one repeats."""
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    """(index in the batch, what is wrong with it): which records made the broker refuse all of them."""


class Examined(NamedTuple):
    """One sound batch within a buffer."""

    start: int
    header: BatchHeader


def split(batches: memoryview, max_message_bytes: int) -> list[Examined] | AppendResult:
    """The whole batches of a buffer, each with a sound header and CRC, none larger than allowed."""
    found: list[Examined] = []
    start, end = 0, len(batches)
    while start < end:
        if end - start < HEADER_BYTES:
            return refuse(ErrorCode.INVALID_RECORD, f"{end - start} bytes at {start} are too few for a batch")
        header = BatchHeader(*HEADER.unpack_from(batches, start))
        fault = header_fault(header, end - start)
        if fault is not None:
            return fault
        if header.size_bytes > max_message_bytes:
            return refuse(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a batch of {header.size_bytes} bytes exceeds max.message.bytes={max_message_bytes}",
            )
        if crc32c(batches[start + ATTRIBUTES_AT : start + header.size_bytes]) != header.crc:
            return refuse(ErrorCode.CORRUPT_MESSAGE, f"the batch at byte {start} does not match its CRC")
        found.append(Examined(start, header))
        start += header.size_bytes
    if not found:
        return refuse(ErrorCode.INVALID_RECORD, "there must be at least one batch")
    return found


def examine_fetched(batches: memoryview, last_epoch: int, leader_epoch: int) -> list[Examined] | AppendResult:
    """The whole batches that a leader has sent, with their CRCs checked. The last may be cut off by the size of the
    fetch.

    Their epochs must not descend, from the log's last to that in which the leader has sent them. A leader that was
    deposed, and has truncated its log since, may send what took the place of its records (KAFKA-18723): sound batches,
    of an epoch that it did not lead.
    """
    examined: list[Examined] = []
    start, end = 0, len(batches)
    while end - start >= HEADER_BYTES:
        header = BatchHeader(*HEADER.unpack_from(batches, start))
        if header.size_bytes > end - start and header.magic == MAGIC:
            break
        if header.magic != MAGIC or header.size_bytes < HEADER_BYTES or header.last_offset_delta < 0:
            return refuse(ErrorCode.CORRUPT_MESSAGE, f"what the leader sent at byte {start} is not a batch")
        if crc32c(batches[start + ATTRIBUTES_AT : start + header.size_bytes]) != header.crc:
            return refuse(ErrorCode.CORRUPT_MESSAGE, f"the batch of offset {header.base_offset} does not match its CRC")
        if not last_epoch <= header.leader_epoch <= leader_epoch:
            return refuse(
                ErrorCode.CORRUPT_MESSAGE,
                f"the batch of offset {header.base_offset} is of leader epoch {header.leader_epoch}, behind one of"
                f" {last_epoch} and from the leader of {leader_epoch}",
            )
        last_epoch = header.leader_epoch
        examined.append(Examined(start, header))
        start += header.size_bytes
    return examined


def header_fault(header: BatchHeader, available: int) -> AppendResult | None:
    """The fault of a batch's frame, checked before its CRC; None if it is sound."""
    if header.magic in (0, 1):
        return refuse(ErrorCode.INVALID_RECORD, f"magic {header.magic}: only record batches of format v2 are accepted")
    if header.magic != MAGIC or header.size_bytes < HEADER_BYTES:
        return refuse(ErrorCode.CORRUPT_MESSAGE, f"magic {header.magic}, {header.size_bytes} bytes: not a batch")
    if header.size_bytes > available:
        return refuse(ErrorCode.INVALID_RECORD, f"a batch of {header.size_bytes} bytes is cut off after {available}")
    return None


def examine(
    batches: memoryview, config: LogConfig, wall_ms: int | None, *, internal: bool
) -> list[Examined] | AppendResult:
    """The batches that a leader may append as they are, or the refusal."""
    examined = split(batches, config.max_message_bytes)
    if isinstance(examined, AppendResult):
        return examined
    if not internal and len(examined) > 1:
        return refuse(ErrorCode.INVALID_RECORD, f"a producer sends one batch per partition, not {len(examined)}")
    for start, header in examined:
        fault = _header_sense_fault(header)
        if fault is None and not internal:
            fault = _client_fault(header)
        if fault is None and not internal and (config.compacts or not _timely(header, config, wall_ms)):
            fault = _record_faults(batches[start : start + header.size_bytes], header, config, wall_ms)
        if fault is not None:
            return fault
    if len(batches) > config.segment_bytes:
        return refuse(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"{len(batches)} bytes exceed segment.bytes={config.segment_bytes}"
        )
    return examined


def recompress(
    batches: memoryview, examined: list[Examined], config: LogConfig
) -> tuple[memoryview, list[Examined]] | AppendResult:
    """The batches, recompressed if the topic has a codec of its own and they have another."""
    target = config.compression
    if target is None or all(header.compression == target or header.is_control for _, header in examined):
        return batches, examined
    remade: list[bytes | bytearray | memoryview] = []
    for start, header in examined:
        batch = batches[start : start + header.size_bytes]
        if header.compression == target or header.is_control:
            remade.append(batch)
            continue
        if header.producer_id >= 0 and header.producer_epoch < 0:
            return refuse(ErrorCode.INVALID_RECORD, f"epoch {header.producer_epoch} of producer {header.producer_id}")
        try:
            records = decode_batch(batch)
        except WireError as error:
            return refuse(ErrorCode.INVALID_RECORD, f"the records can't be decoded: {error}")
        remade.append(
            encode_batch(
                [NewRecord(record.timestamp, record.key, record.value, record.headers) for record in records],
                compression=target,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                transactional=header.is_transactional,
            )
        )
    joined = memoryview(bytearray().join(remade))
    again = split(joined, config.max_message_bytes)
    return again if isinstance(again, AppendResult) else (joined, again)


def refuse(error: ErrorCode, message: str) -> AppendResult:
    return AppendResult(error=error, message=message)


def _header_sense_fault(header: BatchHeader) -> AppendResult | None:
    count, delta = header.record_count, header.last_offset_delta
    if count <= 0 or count != delta + 1:
        return refuse(ErrorCode.INVALID_RECORD, f"{count} records can't span offsets 0 to {delta}")
    if header.compression > _COMPRESSION_MAX:
        return refuse(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression {header.compression} is not known")
    return None


def _client_fault(header: BatchHeader) -> AppendResult | None:
    """The fault of a batch that only a coordinator or the quorum may write; None if a client may write it."""
    if header.base_offset != 0:
        return refuse(ErrorCode.INVALID_RECORD, f"a producer's batch begins at offset 0, not {header.base_offset}")
    if header.is_control:
        return refuse(ErrorCode.INVALID_RECORD, "clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        return refuse(
            ErrorCode.INVALID_RECORD, f"sequence {header.base_sequence} of producer {header.producer_id} is negative"
        )
    return None


def _timely(header: BatchHeader, config: LogConfig, wall_ms: int | None) -> bool:
    """Whether the topic takes the timestamps that the header has."""
    if header.is_log_append_time:
        return False
    both = (header.base_timestamp, header.max_timestamp)
    return wall_ms is None or config.log_append_time or all(_in_range(each, config, wall_ms) for each in both)


def _in_range(timestamp: int, config: LogConfig, wall_ms: int) -> bool:
    earliest_ms, latest_ms = _range(config, wall_ms)
    return timestamp == NO_TIMESTAMP or earliest_ms <= timestamp <= latest_ms


def _range(config: LogConfig, wall_ms: int) -> tuple[int, int]:
    return wall_ms - config.message_timestamp_before_max_ms, wall_ms + config.message_timestamp_after_max_ms


def _record_faults(
    batch: memoryview, header: BatchHeader, config: LogConfig, wall_ms: int | None
) -> AppendResult | None:
    """Each record that the topic does not take (KIP-467): for its time, unless it lacks its key."""
    try:
        records = decode_batch(batch)
    except WireError as torn:
        return refuse(ErrorCode.INVALID_RECORD, f"the records can't be decoded: {torn}")
    faults: list[tuple[int, str]] = []
    error = ErrorCode.INVALID_RECORD
    for index, record in enumerate(records):
        if config.compacts and record.key is None:
            faults.append((index, "a compacted topic takes no record without a key"))
            continue
        text = _time_fault(record.timestamp, header, config, wall_ms)
        if text is not None:
            error = ErrorCode.INVALID_TIMESTAMP
            faults.append((index, text))
    if not faults and not _timely(header, config, wall_ms):
        return refuse(ErrorCode.INVALID_TIMESTAMP, "the header has another time than its records")
    if not faults:
        return None
    return AppendResult(error=error, message=faults[0][1], record_errors=tuple(faults[:_RECORD_ERRORS_MAX]))


def _time_fault(timestamp: int, header: BatchHeader, config: LogConfig, wall_ms: int | None) -> str | None:
    if header.is_log_append_time:
        return "a producer's batch can't have timestamps of the append"
    if wall_ms is None or config.log_append_time or _in_range(timestamp, config, wall_ms):
        return None
    earliest_ms, latest_ms = _range(config, wall_ms)
    return f"timestamp {timestamp} is not between {earliest_ms} and {latest_ms} (message.timestamp.*.max.ms)"
