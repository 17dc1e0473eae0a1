"""Batches of the metadata log: framed values in, framed values out, and the quorum's checks of batches from other
nodes.

Owns how the quorum fills a record batch: uncompressed, no producer, no keys, one timestamp for all. The controller
gives framed values their meaning. Batches from other nodes are validated, and any fault is a `CorruptBatch`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from tanist.quorum.storage.raft_log import CorruptBatch, MetadataBatch, VoterMessage
from tanist.quorum.voters import VoterSet
from tanist.wire.batch import (
    HEADER_BYTES,
    BatchHeader,
    NewRecord,
    crc_matches,
    decode_batch,
    encode_batch,
    iterate_headers,
)
from tanist.wire.control import (
    ControlKind,
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
    control_kind,
    decode_control_record,
    encode_control_batch,
)
from tanist.wire.errors import WireError
from tanist.wire.messages.leader_change_message import Voter

_RECORD_OVERHEAD_MAX: Final = 24
"""Of a record without key and headers: lengths and deltas, varints of at most five bytes, and three bytes more."""


def encode_values(values: Sequence[bytes], *, base_offset: int, epoch: int, timestamp: int) -> bytearray:
    records = [NewRecord(timestamp, None, value) for value in values]
    return encode_batch(records, base_offset=base_offset, leader_epoch=epoch)


def cut_to_size(values: Sequence[bytes], max_bytes: int) -> Iterator[Sequence[bytes]]:
    """The values in runs that make batches of at most `max_bytes`; a value that is larger by itself is a run too."""
    start, size = 0, HEADER_BYTES
    for index, value in enumerate(values):
        record_bytes = len(value) + _RECORD_OVERHEAD_MAX
        if index > start and size + record_bytes > max_bytes:
            yield values[start:index]
            start, size = index, HEADER_BYTES
        size += record_bytes
    yield values[start:]


def encode_leader_change(
    leader_id: int,
    voters: VoterSet,
    granting: Collection[int],
    *,
    base_offset: int,
    epoch: int,
    timestamp: int,
    more: Sequence[VoterMessage] = (),
) -> bytearray:
    """Rule 143. Version 0 of the message, which has voters without directories: Apache Kafka reads no other.

    `more` go into the same batch: the voters that so far only the bootstrap snapshot names.
    """
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=tuple(Voter(voter_id=voter.node_id) for voter in voters),
        granting_voters=tuple(Voter(voter_id=voter_id) for voter_id in sorted(granting)),
    )
    return encode_control_batch([message, *more], base_offset=base_offset, leader_epoch=epoch, timestamp_ms=timestamp)


def encode_voters(messages: Sequence[VoterMessage], *, base_offset: int, epoch: int, timestamp: int) -> bytearray:
    """A change of the voters or of kraft.version."""
    return encode_control_batch(messages, base_offset=base_offset, leader_epoch=epoch, timestamp_ms=timestamp)


def voter_records(batches: memoryview) -> Iterator[tuple[int, VoterMessage]]:
    """Records that change the voters, and their offsets, in whole batches. Control records of other kinds are left."""
    for position, header in read_headers(batches):
        if header.is_control:
            try:
                for record in decode_batch(batches[position : position + header.size_bytes]):
                    if control_kind(record) in (ControlKind.KRAFT_VERSION, ControlKind.KRAFT_VOTERS):
                        message = decode_control_record(record).message
                        if isinstance(message, KRaftVersionRecord | VotersRecord):
                            yield record.offset, message
            except WireError as error:
                raise CorruptBatch(str(error)) from error


def read_headers(batches: memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch; a batch that is cut off ends the reading."""
    try:
        yield from iterate_headers(batches)
    except WireError as error:
        raise CorruptBatch(str(error)) from error


def check_batches(batches: memoryview, end_offset: int, last_epoch: int, max_epoch: int) -> int:
    """How many bytes of `batches` can follow a log that ends at (`last_epoch`, `end_offset`)."""
    length = 0
    for position, header in read_headers(batches):
        if header.base_offset != end_offset:
            raise CorruptBatch(f"a batch at offset {header.base_offset} does not follow {end_offset}")
        if not last_epoch <= header.leader_epoch <= max_epoch:
            raise CorruptBatch(f"a batch of epoch {header.leader_epoch}, between {last_epoch} and {max_epoch} expected")
        if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
            raise CorruptBatch(f"{header.record_count} records in {header.last_offset_delta + 1} offsets")
        check_crc(batches, position, header)
        length = position + header.size_bytes
        end_offset = header.next_offset
        last_epoch = header.leader_epoch
    return length


def check_crc(batches: memoryview, position: int, header: BatchHeader) -> None:
    if not crc_matches(batches, position, header.size_bytes):
        raise CorruptBatch(f"the batch at offset {header.base_offset} does not match its CRC")


def decode_values(batch: memoryview, header: BatchHeader) -> MetadataBatch:
    """The values of a batch for a reader of metadata; none for a control batch."""
    values: list[bytes] = []
    if not header.is_control:
        try:
            values = [record.value or b"" for record in decode_batch(batch)]
        except WireError as error:
            raise CorruptBatch(str(error)) from error
    return MetadataBatch(
        header.base_offset,
        header.next_offset,
        header.leader_epoch,
        header.base_timestamp,
        values,
        header.size_bytes,
    )
