"""The records of `__consumer_offsets` for a Streams group (KIP-1071).

A group has its epoch, the topology of its application, its members, the target assignment, and each member's present
assignment of tasks. The formats are Apache Kafka 4.4's. A topology is stored as members send it.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.consumer_group_records import TargetAssignmentValue
from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.messages.streams_group_heartbeat_request import Endpoint, KeyValue, Subtopology, TaskIds
from tanist.wire.schema import Array, Field, Struct

_GROUP: tuple[Field, ...] = (Field("group", "string", (0, 0)),)
_MEMBER: tuple[Field, ...] = (Field("group", "string", (0, 0)), Field("member_id", "string", (0, 0)))


class StreamsGroupKey(CoordinatorKey):
    """Of the group itself (Kafka's StreamsGroupMetadataKey)."""

    group: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (17,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _GROUP


class AssignmentConfig(Struct):
    key: str = ""
    value: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 0)),
        Field("value", "string", (0, 0)),
    )


class StreamsGroupValue(CoordinatorValue):
    """The group's epoch, a hash over its topics, and the configuration of its last assignment.

    The last two fields are Apache Kafka 4.4's, of KIP-1331: what a plugin holds.
    """

    epoch: int = 0
    metadata_hash: int = 0
    validated_topology_epoch: int = -1
    """The epoch of the topology whose topics are all there; -1: some are not."""
    last_assignment_configs: tuple[AssignmentConfig, ...] | None = None
    stored_description_topology_epoch: int = -1
    failed_description_topology_epoch: int = -1

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", (0, 0)),
        Field("metadata_hash", "int64", (0, 0)),
        Field("validated_topology_epoch", "int32", (0, 0), tag=0, tagged=(0, 0)),
        Field("last_assignment_configs", Array(AssignmentConfig), (0, 0), nullable=(0, 0), tag=1, tagged=(0, 0)),
        Field("stored_description_topology_epoch", "int32", (0, 0), tag=2, tagged=(0, 0)),
        Field("failed_description_topology_epoch", "int32", (0, 0), tag=3, tagged=(0, 0)),
    )


class StreamsMemberKey(CoordinatorKey):
    """Of a member (Kafka's StreamsGroupMemberMetadataKey)."""

    group: str = ""
    member_id: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (19,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _MEMBER


class StreamsMemberValue(CoordinatorValue):
    """Who a member is, and of which process."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("instance_id", "string", (0, 0), nullable=(0, 0)),
        Field("rack_id", "string", (0, 0), nullable=(0, 0)),
        Field("client_id", "string", (0, 0)),
        Field("client_host", "string", (0, 0)),
        Field("rebalance_timeout_ms", "int32", (0, 0)),
        Field("topology_epoch", "int32", (0, 0)),
        Field("process_id", "string", (0, 0)),
        Field("user_endpoint", Endpoint, (0, 0), nullable=(0, 0)),
        Field("client_tags", Array(KeyValue), (0, 0)),
    )


class StreamsTargetKey(CoordinatorKey):
    """Of the target assignment as a whole (Kafka's StreamsGroupTargetAssignmentMetadataKey)."""

    group: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (20,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _GROUP


class StreamsMemberTargetKey(CoordinatorKey):
    """Of a member's part of the target assignment (Kafka's StreamsGroupTargetAssignmentMemberKey)."""

    group: str = ""
    member_id: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (21,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _MEMBER


class StreamsMemberTargetValue(CoordinatorValue):
    """The tasks that a member is to have."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("active_tasks", Array(TaskIds), (0, 0)),
        Field("standby_tasks", Array(TaskIds), (0, 0)),
        Field("warmup_tasks", Array(TaskIds), (0, 0)),
    )


class StreamsMemberCurrentKey(CoordinatorKey):
    """Of a member's present assignment (Kafka's StreamsGroupCurrentMemberAssignmentKey)."""

    group: str = ""
    member_id: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (22,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _MEMBER


class AssignedTasks(Struct):
    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = None
    """Of active tasks: the member's epoch when it got each."""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 0)),
        Field("partitions", Array("int32"), (0, 0)),
        Field("assignment_epochs", Array("int32"), (0, 0), nullable=(0, 0), tag=0, tagged=(0, 0)),
    )


class StreamsMemberCurrentValue(CoordinatorValue):
    """The tasks that a member has, and those that it must give up."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    active_tasks: tuple[AssignedTasks, ...] = ()
    standby_tasks: tuple[AssignedTasks, ...] = ()
    warmup_tasks: tuple[AssignedTasks, ...] = ()
    active_tasks_pending_revocation: tuple[AssignedTasks, ...] = ()
    standby_tasks_pending_revocation: tuple[AssignedTasks, ...] = ()
    warmup_tasks_pending_revocation: tuple[AssignedTasks, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_epoch", "int32", (0, 0)),
        Field("previous_member_epoch", "int32", (0, 0)),
        Field("state", "int8", (0, 0)),
        Field("active_tasks", Array(AssignedTasks), (0, 0)),
        Field("standby_tasks", Array(AssignedTasks), (0, 0)),
        Field("warmup_tasks", Array(AssignedTasks), (0, 0)),
        Field("active_tasks_pending_revocation", Array(AssignedTasks), (0, 0)),
        Field("standby_tasks_pending_revocation", Array(AssignedTasks), (0, 0)),
        Field("warmup_tasks_pending_revocation", Array(AssignedTasks), (0, 0)),
    )


class StreamsTopologyKey(CoordinatorKey):
    """Of the application's topology (Kafka's StreamsGroupTopologyKey)."""

    group: str = ""

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (23,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _GROUP


class StreamsTopologyValue(CoordinatorValue):
    """The application's topology."""

    epoch: int = 0
    subtopologies: tuple[Subtopology, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", (0, 0)),
        Field("subtopologies", Array(Subtopology), (0, 0)),
    )


STREAMS_KINDS = (
    (StreamsGroupKey, StreamsGroupValue),
    (StreamsMemberKey, StreamsMemberValue),
    (StreamsTargetKey, TargetAssignmentValue),
    (StreamsMemberTargetKey, StreamsMemberTargetValue),
    (StreamsMemberCurrentKey, StreamsMemberCurrentValue),
    (StreamsTopologyKey, StreamsTopologyValue),
)
