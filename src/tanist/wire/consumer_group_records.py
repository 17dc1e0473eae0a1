"""The records of `__consumer_offsets` for a group of the consumer protocol (KIP-848).

A group has its epoch, its members' subscriptions, the target assignment, and each member's present assignment: one
record each, so that a change writes only what it changes. The formats are Apache Kafka 4.3's; `group_records` reads and
writes them with those of the classic protocol.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.schema import ZERO_UUID, Array, Field, Struct, own


class ConsumerGroupKey(CoordinatorKey):
    """Of the group itself (Kafka's ConsumerGroupMetadataKey)."""

    group: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (3,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group", "string", (0, 0)),)


class ConsumerGroupValue(CoordinatorValue):
    """The group's epoch, and a hash over the topics that it is made for."""

    epoch: int = 0
    metadata_hash: int = 0

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", (0, 0)),
        Field("metadata_hash", "int64", (0, 0), tag=0, tagged=(0, 0)),
    )


class ConsumerMemberKey(CoordinatorKey):
    """Of a member's subscription (Kafka's ConsumerGroupMemberMetadataKey)."""

    group: str = ""
    member_id: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (5,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group", "string", (0, 0)),
        Field("member_id", "string", (0, 0)),
    )


class ClassicProtocol(Struct):
    name: str = ""
    metadata: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("name", "string", (0, 0)), Field("metadata", "bytes", (0, 0)))


class ClassicMemberMetadata(Struct):
    """The protocols and timeouts of a member that still speaks the classic protocol."""

    session_timeout_ms: int = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("session_timeout_ms", "int32", (0, 0)),
        Field("supported_protocols", Array(ClassicProtocol), (0, 0)),
    )


class ConsumerMemberValue(CoordinatorValue):
    """A member's identity and subscription.

    A member that speaks the consumer protocol has no `classic_member_metadata`, and its record says so explicitly:
    without that, a reader would expect some.
    """

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_member_metadata: ClassicMemberMetadata | None = own(ClassicMemberMetadata)

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("instance_id", "string", (0, 0), nullable=(0, 0)),
        Field("rack_id", "string", (0, 0), nullable=(0, 0)),
        Field("client_id", "string", (0, 0)),
        Field("client_host", "string", (0, 0)),
        Field("subscribed_topic_names", Array("string"), (0, 0)),
        Field("subscribed_topic_regex", "string", (0, 0), nullable=(0, 0)),
        Field("rebalance_timeout_ms", "int32", (0, 0)),
        Field("server_assignor", "string", (0, 0), nullable=(0, 0)),
        Field("classic_member_metadata", ClassicMemberMetadata, (0, 0), nullable=(0, 0), tag=0, tagged=(0, 0)),
    )


class TargetAssignmentKey(CoordinatorKey):
    """Of the target assignment as a whole (Kafka's ConsumerGroupTargetAssignmentMetadataKey)."""

    group: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (6,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("group", "string", (0, 0)),)


class TargetAssignmentValue(CoordinatorValue):
    """The group epoch for which the target was computed: written last, when all members' targets are."""

    assignment_epoch: int = 0
    assignment_timestamp: int = 0

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("assignment_epoch", "int32", (0, 0)),
        Field("assignment_timestamp", "int64", (0, 0), tag=0, tagged=(0, 0)),
    )


class MemberTargetKey(CoordinatorKey):
    """Of a member's part of the target assignment (Kafka's ConsumerGroupTargetAssignmentMemberKey)."""

    group: str = ""
    member_id: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (7,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group", "string", (0, 0)),
        Field("member_id", "string", (0, 0)),
    )


class TargetPartitions(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", Array("int32"), (0, 0)),
    )


class MemberTargetValue(CoordinatorValue):
    """A member's target assignment."""

    topic_partitions: tuple[TargetPartitions, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_partitions", Array(TargetPartitions), (0, 0)),)


class MemberCurrentKey(CoordinatorKey):
    """Of a member's present assignment (Kafka's ConsumerGroupCurrentMemberAssignmentKey)."""

    group: str = ""
    member_id: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (8,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group", "string", (0, 0)),
        Field("member_id", "string", (0, 0)),
    )


class CurrentPartitions(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", Array("int32"), (0, 0)),
        Field("assignment_epochs", Array("int32"), (0, 0), nullable=(0, 0), tag=0, tagged=(0, 0)),
    )


class MemberCurrentValue(CoordinatorValue):
    """A member's epoch, its partitions, and those that it has yet to give up."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: tuple[CurrentPartitions, ...] = ()
    partitions_pending_revocation: tuple[CurrentPartitions, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32", (0, 0)),
        Field("previous_member_epoch", "int32", (0, 0)),
        Field("state", "int8", (0, 0)),
        Field("assigned_partitions", Array(CurrentPartitions), (0, 0)),
        Field("partitions_pending_revocation", Array(CurrentPartitions), (0, 0)),
    )


class GroupRegexKey(CoordinatorKey):
    """Of a regular expression that members subscribe to (Kafka's ConsumerGroupRegularExpressionKey)."""

    group: str = ""
    regular_expression: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (16,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group", "string", (0, 0)),
        Field("regular_expression", "string", (0, 0)),
    )


class GroupRegexValue(CoordinatorValue):
    """The topics that it matched, as of a version (an offset) of the cluster's metadata."""

    topics: tuple[str, ...] = ()
    version: int = 0
    timestamp: int = 0

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", Array("string"), (0, 0)),
        Field("version", "int64", (0, 0)),
        Field("timestamp", "int64", (0, 0)),
    )
