"""The records of `__consumer_offsets`: a group's committed offsets, and its members as of its last stable generation.

They are declared like messages; the coordinator gives them their meaning. A key begins with its kind and a value with
its version, two bytes each. The log is compacted by key, so the last value counts, and no value is a tombstone. Unknown
kinds are those of newer protocols: readers skip them.
"""

from __future__ import annotations

from struct import Struct as Layout
from struct import error as struct_error
from typing import ClassVar, Final
from uuid import UUID

from tanist.wire.codec import UnsupportedVersion, WireError, decoder, encoder
from tanist.wire.consumer_group_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    ConsumerMemberValue,
    GroupRegexKey,
    GroupRegexValue,
    MemberCurrentKey,
    MemberCurrentValue,
    MemberTargetKey,
    MemberTargetValue,
    TargetAssignmentKey,
    TargetAssignmentValue,
)
from tanist.wire.group_record import GroupRecordKey, GroupRecordValue
from tanist.wire.primitives import Buffer
from tanist.wire.schema import ZERO_UUID, Array, Field, Message, Struct


class OffsetCommitKey(GroupRecordKey):
    """The group, topic and partition of an offset."""

    group: str = ""
    topic: str = ""
    partition: int = 0

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (0, 1)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group", "string", (0, 0)),
        Field("topic", "string", (0, 0)),
        Field("partition", "int32", (0, 0)),
    )


class OffsetCommitValue(GroupRecordValue):
    """A group's committed offset in a partition."""

    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: UUID = ZERO_UUID

    WRITTEN: ClassVar[int] = 4
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("offset", "int64", (0, 4)),
        Field("leader_epoch", "int32", (3, 4)),
        Field("metadata", "string", (0, 4)),
        Field("commit_timestamp", "int64", (0, 4)),
        Field("expire_timestamp", "int64", (1, 1)),
        Field("topic_id", "uuid", (4, 4), tag=0, tagged=(4, 4)),
    )


class GroupMetadataKey(GroupRecordKey):
    """The group."""

    group: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (2,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group", "string", (0, 0)),)


class GroupMetadataMember(Struct):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = 0
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 4)),
        Field("group_instance_id", "string", (3, 4), nullable=(3, 4)),
        Field("client_id", "string", (0, 4)),
        Field("client_host", "string", (0, 4)),
        Field("rebalance_timeout", "int32", (1, 4)),
        Field("session_timeout", "int32", (0, 4)),
        Field("subscription", "bytes", (0, 4)),
        Field("assignment", "bytes", (0, 4)),
    )


class GroupMetadataValue(GroupRecordValue):
    """A generation of a group of the classic protocol: its members, and what each was assigned."""

    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp: int = -1
    members: tuple[GroupMetadataMember, ...] = ()

    WRITTEN: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("protocol_type", "string", (0, 4)),
        Field("generation", "int32", (0, 4)),
        Field("protocol", "string", (0, 4), nullable=(0, 4)),
        Field("leader", "string", (0, 4), nullable=(0, 4)),
        Field("current_state_timestamp", "int64", (2, 4)),
        Field("members", Array(GroupMetadataMember), (0, 4)),
    )


_PREFIX: Final = Layout(">h")
_KEY_VERSION: Final = 0

_RECORDS: Final[dict[int, tuple[type[GroupRecordKey], type[GroupRecordValue]]]] = {
    kind: (key, value)
    for key, value in (
        (OffsetCommitKey, OffsetCommitValue),
        (GroupMetadataKey, GroupMetadataValue),
        (ConsumerGroupKey, ConsumerGroupValue),
        (ConsumerMemberKey, ConsumerMemberValue),
        (TargetAssignmentKey, TargetAssignmentValue),
        (MemberTargetKey, MemberTargetValue),
        (MemberCurrentKey, MemberCurrentValue),
        (GroupRegexKey, GroupRegexValue),
    )
    for kind in key.RECORD_KINDS
}


def encode_key(key: GroupRecordKey) -> bytes:
    return _PREFIX.pack(key.RECORD_KINDS[-1]) + encoder(type(key), _KEY_VERSION)(key)


def encode_value(value: GroupRecordValue, version: int | None = None) -> bytes:
    """The value, in the version that Kafka 4.3 writes unless another is asked for."""
    version = value.WRITTEN if version is None else version
    return _PREFIX.pack(version) + encoder(type(value), version)(value)


def decode_group_record(key: Buffer, value: Buffer | None) -> tuple[GroupRecordKey, GroupRecordValue | None] | None:
    """A record, its value None for a tombstone; None if it is of a kind that is not known. `WireError` if malformed."""
    kind = _prefix(key)
    classes = _RECORDS.get(kind)
    if classes is None:
        return None
    key_class, value_class = classes
    decoded_key, end = decoder(key_class, _KEY_VERSION)(key, _PREFIX.size)
    _require_end(key_class, key, end)
    if value is None:
        return decoded_key, None
    version = _prefix(value)
    first, last = value_class.VERSIONS
    if not first <= version <= last:
        raise UnsupportedVersion(f"{value_class.__name__} has the versions {first} to {last}, not {version}")
    decoded_value, end = decoder(value_class, version)(value, _PREFIX.size)
    _require_end(value_class, value, end)
    return decoded_key, decoded_value


def _prefix(data: Buffer) -> int:
    try:
        number: int = _PREFIX.unpack_from(data)[0]
    except struct_error as error:
        raise WireError(f"a group record's key or value of {len(data)} bytes is cut short") from error
    return number


def _require_end(cls: type[Message], data: Buffer, end: int) -> None:
    if end != len(data):
        raise WireError(f"{len(data) - end} bytes after {cls.__name__}")
