"""Batches of the metadata log: framed values in, framed values out, and the control records of the quorum.

Owns how the quorum fills Kafka's record batch (v2): uncompressed, no producer, no keys, one timestamp for all. What
a framed value says is the controller's matter. Batches that came from elsewhere are checked before anything is
believed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from tanist.quorum.raft_log import CorruptBatch, MetadataBatch
from tanist.quorum.voters import VoterSet
from tanist.wire.codec import encoder
from tanist.wire.messages.leader_change_message import LeaderChangeMessage
from tanist.wire.messages.leader_change_message import Voter as ChangeVoter
from tanist.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from tanist.wire.messages.snapshot_header_record import SnapshotHeaderRecord

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
LENGTH_END: Final = 12
CRC_START: Final = 21
CONTROL: Final = 0x20
_CONTROL_KEY: Final = Struct(">hh")
LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4


class Header(NamedTuple):
    base_offset: int
    length: int
    epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.length + LENGTH_END

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1


def encode_values(values: Sequence[bytes], *, base_offset: int, epoch: int, timestamp: int) -> bytearray:
    return _encode([(None, value) for value in values], base_offset, epoch, timestamp, attributes=0)


def encode_leader_change(
    leader_id: int,
    voters: VoterSet,
    granting: Collection[int],
    *,
    base_offset: int,
    epoch: int,
    timestamp: int,
) -> bytearray:
    """Rule 143. Version 0 of the message, as kraft.version 0 has it: voters without directories."""
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=tuple(ChangeVoter(voter_id=voter.node_id) for voter in voters),
        granting_voters=tuple(ChangeVoter(voter_id=voter_id) for voter_id in sorted(granting)),
    )
    value = encoder(LeaderChangeMessage, 0)(message)
    return _encode([(_CONTROL_KEY.pack(0, LEADER_CHANGE), value)], base_offset, epoch, timestamp, attributes=CONTROL)


def encode_snapshot_header(*, epoch: int, timestamp: int, last_contained_log_timestamp: int) -> bytearray:
    value = encoder(SnapshotHeaderRecord, 0)(
        SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp)
    )
    return _encode([(_CONTROL_KEY.pack(0, SNAPSHOT_HEADER), value)], 0, epoch, timestamp, attributes=CONTROL)


def encode_snapshot_footer(*, base_offset: int, epoch: int, timestamp: int) -> bytearray:
    value = encoder(SnapshotFooterRecord, 0)(SnapshotFooterRecord())
    return _encode([(_CONTROL_KEY.pack(0, SNAPSHOT_FOOTER), value)], base_offset, epoch, timestamp, attributes=CONTROL)


def read_headers(batches: memoryview) -> Iterator[tuple[int, Header]]:
    """Position and header of each whole batch; a batch that is cut off ends the reading."""
    position = 0
    while position + HEADER_BYTES <= len(batches):
        header = Header(*HEADER.unpack_from(batches, position))
        if header.magic != 2 or header.size_bytes < HEADER_BYTES:
            raise CorruptBatch(f"magic {header.magic}, length {header.length} at byte {position}")
        if position + header.size_bytes > len(batches):
            return
        yield position, header
        position += header.size_bytes


def check_batches(batches: memoryview, end_offset: int, last_epoch: int, max_epoch: int) -> int:
    """How many bytes of `batches` can follow a log that ends at (`end_offset`, `last_epoch`)."""
    length = 0
    for position, header in read_headers(batches):
        if header.base_offset != end_offset:
            raise CorruptBatch(f"a batch at offset {header.base_offset} does not follow {end_offset}")
        if not last_epoch <= header.epoch <= max_epoch:
            raise CorruptBatch(
                f"a batch of epoch {header.epoch} in a log of {last_epoch}, under a leader of {max_epoch}"
            )
        if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
            raise CorruptBatch(f"{header.record_count} records in {header.last_offset_delta + 1} offsets")
        length = position + header.size_bytes
        if crc32c(batches[position + CRC_START : length]) != header.crc:
            raise CorruptBatch(f"the batch at offset {header.base_offset} has another CRC")
        end_offset = header.next_offset
        last_epoch = header.epoch
    return length


def check_crc(batch: memoryview) -> None:
    header = Header(*HEADER.unpack_from(batch))
    if crc32c(batch[CRC_START : header.size_bytes]) != header.crc:
        raise CorruptBatch(f"the batch at offset {header.base_offset} has another CRC")


def decode_batch(batch: memoryview) -> MetadataBatch:
    """The first batch of `batch`; a control batch has no values for a reader of metadata."""
    header = Header(*HEADER.unpack_from(batch))
    if header.attributes & CONTROL:
        return MetadataBatch(header.base_offset, header.epoch, header.base_timestamp, ())
    values = [value for _, value in _records(batch[HEADER_BYTES : header.size_bytes], header.record_count)]
    return MetadataBatch(header.base_offset, header.epoch, header.base_timestamp, values)


def decode_batches(batches: memoryview) -> Iterator[MetadataBatch]:
    for position, header in read_headers(batches):
        yield decode_batch(batches[position : position + header.size_bytes])


def control_records(batch: memoryview) -> list[tuple[int, bytes]]:
    """Type and message of each record of a control batch."""
    header = Header(*HEADER.unpack_from(batch))
    found: list[tuple[int, bytes]] = []
    for key, value in _records(batch[HEADER_BYTES : header.size_bytes], header.record_count):
        if len(key) < _CONTROL_KEY.size:
            raise CorruptBatch("a control record without a type")
        found.append((_CONTROL_KEY.unpack_from(key)[1], value))
    return found


def _records(body: memoryview, count: int) -> Iterator[tuple[bytes, bytes]]:
    """Key (empty if there is none) and value of each record."""
    position = 0
    try:
        for _ in range(count):
            length, position = _read_varint(body, position)
            end = position + length
            _, position = _read_varint(body, position + 1)
            _, position = _read_varint(body, position)
            size, position = _read_varint(body, position)
            key = bytes(body[position : position + max(0, size)])
            size, position = _read_varint(body, position + max(0, size))
            if size < 0 or position + size > end or end > len(body):
                raise CorruptBatch("a record reaches beyond its batch")
            yield key, bytes(body[position : position + size])
            position = end
    except IndexError as fault:
        raise CorruptBatch("a record is cut off") from fault


def _encode(
    records: Sequence[tuple[bytes | None, bytes]], base_offset: int, epoch: int, timestamp: int, *, attributes: int
) -> bytearray:
    parts: list[bytes] = []
    for delta, (key, value) in enumerate(records):
        head = b"\x00" + _varint(0) + _varint(delta)
        head += _varint(-1) if key is None else _varint(len(key)) + key
        head += _varint(len(value))
        parts += [_varint(len(head) + len(value) + 1), head, value, b"\x00"]
    body = b"".join(parts)
    batch = bytearray(HEADER_BYTES)
    fields = (
        attributes, len(records) - 1, timestamp, timestamp, -1, -1, -1, len(records),
    )  # fmt: skip
    HEADER.pack_into(batch, 0, base_offset, HEADER_BYTES - LENGTH_END + len(body), epoch, 2, 0, *fields)
    batch += body
    crc = crc32c(memoryview(batch)[CRC_START:])
    batch[CRC_START - 4 : CRC_START] = crc.to_bytes(4, "big")
    return batch


def _varint(value: int) -> bytes:
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(view: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise CorruptBatch("a varint of more than 10 bytes")
