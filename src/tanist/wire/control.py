"""Control records: markers in the logs, in batches that no consumer sees.

The key has the kind of record; the value is a message that begins with its version. Transaction markers stand in the
logs of topics, the others in the metadata log and its snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct as Layout
from struct import error as struct_error
from typing import Final, NamedTuple, TypeAlias

from tanist.wire.batch import BatchHeader, NewRecord, Record, decode_batch, encode_batch, read_header
from tanist.wire.codec import decoder, encoder
from tanist.wire.errors import WireError
from tanist.wire.messages.end_txn_marker import EndTxnMarker
from tanist.wire.messages.kraft_version_record import KRaftVersionRecord
from tanist.wire.messages.leader_change_message import LeaderChangeMessage
from tanist.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from tanist.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from tanist.wire.messages.voters_record import VotersRecord
from tanist.wire.primitives import Buffer

__all__ = [
    "ControlKind",
    "ControlMessage",
    "ControlRecord",
    "EndTxnMarker",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
    "control_kind",
    "decode_control_batch",
    "decode_control_record",
    "encode_control_batch",
    "encode_control_key",
    "encode_marker_batch",
]


class ControlKind(IntEnum):
    """The type in the key of a control record."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


ControlMessage: TypeAlias = (
    LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord
)
"""The quorum's own records."""


class ControlRecord(NamedTuple):
    offset: int
    kind: ControlKind
    message: ControlMessage | EndTxnMarker


_CLASSES: Final[dict[ControlKind, type[ControlMessage]]] = {
    ControlKind.LEADER_CHANGE: LeaderChangeMessage,
    ControlKind.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlKind.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlKind.KRAFT_VERSION: KRaftVersionRecord,
    ControlKind.KRAFT_VOTERS: VotersRecord,
}
_KINDS: Final = {cls: kind for kind, cls in _CLASSES.items()}
_KEY: Final = Layout(">hh")
"""Version, type."""
_KEY_VERSION: Final = 0
_VERSION: Final = Layout(">h")


def control_kind(record: Record) -> int:
    """The number of a control record's kind, be it known or not. `WireError` if its key cannot be read."""
    try:
        return int(_KEY.unpack_from(record.key or b"")[1])
    except struct_error as error:
        raise WireError(f"the control record at offset {record.offset}: {error}") from error


def encode_control_key(kind: ControlKind) -> bytes:
    return _KEY.pack(_KEY_VERSION, kind)


def encode_control_batch(
    messages: Sequence[ControlMessage], *, base_offset: int, leader_epoch: int, timestamp_ms: int
) -> bytearray:
    """A batch of the quorum's own records, each in the version of its field `version`."""
    records = []
    for message in messages:
        value = encoder(type(message), message.version)(message)
        records.append(NewRecord(timestamp_ms, encode_control_key(_KINDS[type(message)]), value))
    return encode_batch(records, base_offset=base_offset, leader_epoch=leader_epoch, control=True)


def encode_marker_batch(
    *,
    committed: bool,
    coordinator_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """The batch that ends a transaction on a partition."""
    key = encode_control_key(ControlKind.COMMIT if committed else ControlKind.ABORT)
    marker = EndTxnMarker(coordinator_epoch=coordinator_epoch)
    value = _VERSION.pack(0) + encoder(EndTxnMarker, 0)(marker)
    return encode_batch(
        [NewRecord(timestamp_ms, key, value)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def decode_control_batch(view: Buffer) -> tuple[BatchHeader, list[ControlRecord]]:
    """The control batch at the start of `view`. `WireError` if it is none, or has a record that we do not know."""
    header = read_header(view)
    if not header.is_control:
        raise WireError(f"the batch at offset {header.base_offset} is no control batch")
    return header, [decode_control_record(record) for record in decode_batch(view)]


def decode_control_record(record: Record) -> ControlRecord:
    """A record of a control batch. A version that is newer than ours is read as ours: Kafka only ever adds fields."""
    try:
        _, kind_number = _KEY.unpack_from(record.key or b"")
        kind = ControlKind(kind_number)
        value = record.value or b""
        version = _VERSION.unpack_from(value)[0]
    except (struct_error, ValueError) as error:
        raise WireError(f"the control record at offset {record.offset}: {error}") from error
    if kind in (ControlKind.ABORT, ControlKind.COMMIT):
        return ControlRecord(record.offset, kind, decoder(EndTxnMarker, 0)(value, _VERSION.size)[0])
    cls = _CLASSES[kind]
    message, end = decoder(cls, min(version, cls.VERSIONS[1]))(value, 0)
    if end != len(value) and version <= cls.VERSIONS[1]:
        raise WireError(f"{len(value) - end} bytes after {cls.__name__} at offset {record.offset}")
    return ControlRecord(record.offset, kind, message)
