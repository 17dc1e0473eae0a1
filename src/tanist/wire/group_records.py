"""The records of `__consumer_offsets`: a group's committed offsets, and its members as of its last stable generation.

They are declared like messages; the coordinator gives them their meaning. A key begins with its kind and a value with
its version, two bytes each. The log is compacted by key, so the last value counts, and no value is a tombstone. Unknown
kinds are those of newer protocols: readers skip them.
"""

from __future__ import annotations

from typing import ClassVar, Final
from uuid import UUID

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
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue, RecordKinds
from tanist.wire.schema import ZERO_UUID, Array, Field, Struct
from tanist.wire.share_group_records import SHARE_KINDS
from tanist.wire.streams_group_records import STREAMS_KINDS


class OffsetCommitKey(CoordinatorKey):
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


class OffsetCommitValue(CoordinatorValue):
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


class GroupMetadataKey(CoordinatorKey):
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


class GroupMetadataValue(CoordinatorValue):
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


_KINDS: Final = RecordKinds(
    "group",
    (
        (OffsetCommitKey, OffsetCommitValue),
        (GroupMetadataKey, GroupMetadataValue),
        (ConsumerGroupKey, ConsumerGroupValue),
        (ConsumerMemberKey, ConsumerMemberValue),
        (TargetAssignmentKey, TargetAssignmentValue),
        (MemberTargetKey, MemberTargetValue),
        (MemberCurrentKey, MemberCurrentValue),
        (GroupRegexKey, GroupRegexValue),
        *SHARE_KINDS,
        *STREAMS_KINDS,
    ),
)
decode_group_record: Final = _KINDS.decode
"""A record of `__consumer_offsets`: its key and value, None for a kind that is not known."""
