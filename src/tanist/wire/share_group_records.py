"""The records of `__consumer_offsets` for a share group (KIP-932).

A group has its epoch, its members' subscriptions, the target assignment, each member's present assignment, and which
share partitions have their state. The formats are Apache Kafka 4.3's, close to those of a consumer group.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.consumer_group_records import MemberTargetValue, TargetAssignmentValue, TargetPartitions
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.schema import ZERO_UUID, Array, Field, Struct

_GROUP: tuple[Field, ...] = (Field("group", "string", (0, 0)),)
_MEMBER: tuple[Field, ...] = (Field("group", "string", (0, 0)), Field("member_id", "string", (0, 0)))


class ShareMemberKey(CoordinatorKey):
    """Of a member's subscription (Kafka's ShareGroupMemberMetadataKey)."""

    group: str = ""
    member_id: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (10,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _MEMBER


class ShareMemberValue(CoordinatorValue):
    """A member's subscription."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("rack_id", "string", (0, 0), nullable=(0, 0)),
        Field("client_id", "string", (0, 0)),
        Field("client_host", "string", (0, 0)),
        Field("subscribed_topic_names", Array("string"), (0, 0)),
    )


class ShareGroupKey(CoordinatorKey):
    """Of the group itself (Kafka's ShareGroupMetadataKey)."""

    group: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (11,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _GROUP


class ShareGroupValue(CoordinatorValue):
    """The group's epoch, and a hash over the topics that it is made for."""

    epoch: int = 0
    metadata_hash: int = 0

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", (0, 0)),
        Field("metadata_hash", "int64", (0, 0)),
    )


class ShareTargetKey(CoordinatorKey):
    """Of the target assignment as a whole (Kafka's ShareGroupTargetAssignmentMetadataKey)."""

    group: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (12,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _GROUP


class ShareMemberTargetKey(CoordinatorKey):
    """Of a member's part of the target assignment (Kafka's ShareGroupTargetAssignmentMemberKey)."""

    group: str = ""
    member_id: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (13,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _MEMBER


class ShareMemberCurrentKey(CoordinatorKey):
    """Of a member's present assignment (Kafka's ShareGroupCurrentMemberAssignmentKey)."""

    group: str = ""
    member_id: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (14,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _MEMBER


class ShareMemberCurrentValue(CoordinatorValue):
    """What a member has, and in which epoch. Its state is always stable: members give up nothing first."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: tuple[TargetPartitions, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32", (0, 0)),
        Field("previous_member_epoch", "int32", (0, 0)),
        Field("state", "int8", (0, 0)),
        Field("assigned_partitions", Array(TargetPartitions), (0, 0)),
    )


class SharePartitionsKey(CoordinatorKey):
    """Of the share partitions that have their state (Kafka's ShareGroupStatePartitionMetadataKey)."""

    group: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (15,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _GROUP


class NamedPartitions(Struct):
    topic_id: UUID = ZERO_UUID
    topic_name: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("topic_name", "string", (0, 0)),
        Field("partitions", Array("int32"), (0, 0)),
    )


class NamedTopic(Struct):
    topic_id: UUID = ZERO_UUID
    topic_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("topic_name", "string", (0, 0)),
    )


class SharePartitionsValue(CoordinatorValue):
    """The share partitions whose state is asked for, is there, or is being deleted."""

    initializing_topics: tuple[NamedPartitions, ...] = ()
    initialized_topics: tuple[NamedPartitions, ...] = ()
    deleting_topics: tuple[NamedTopic, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("initializing_topics", Array(NamedPartitions), (0, 0)),
        Field("initialized_topics", Array(NamedPartitions), (0, 0)),
        Field("deleting_topics", Array(NamedTopic), (0, 0)),
    )


SHARE_KINDS = (
    (ShareMemberKey, ShareMemberValue),
    (ShareGroupKey, ShareGroupValue),
    (ShareTargetKey, TargetAssignmentValue),
    (ShareMemberTargetKey, MemberTargetValue),
    (ShareMemberCurrentKey, ShareMemberCurrentValue),
    (SharePartitionsKey, SharePartitionsValue),
)
