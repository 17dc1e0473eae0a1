"""StreamsGroupDescribeResponse: API key 89, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct, own


class KeyValue(Struct):
    key: str = ""
    value: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 1)),
        Field("value", "string", (0, 1)),
    )


class TopicInfo(Struct):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: tuple[KeyValue, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("partitions", "int32", (0, 1)),
        Field("replication_factor", "int16", (0, 1)),
        Field("topic_configs", Array(KeyValue), (0, 1)),
    )


class Subtopology(Struct):
    subtopology_id: str = ""
    source_topics: tuple[str, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("source_topics", Array("string"), (0, 1)),
        Field("repartition_sink_topics", Array("string"), (0, 1)),
        Field("state_changelog_topics", Array(TopicInfo), (0, 1)),
        Field("repartition_source_topics", Array(TopicInfo), (0, 1)),
    )


class Topology(Struct):
    epoch: int = 0
    subtopologies: tuple[Subtopology, ...] | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", (0, 1)),
        Field("subtopologies", Array(Subtopology), (0, 1), nullable=(0, 1)),
    )


class Endpoint(Struct):
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("host", "string", (0, 1)),
        Field("port", "uint16", (0, 1)),
    )


class TaskOffset(Struct):
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("partition", "int32", (0, 1)),
        Field("offset", "int64", (0, 1)),
    )


class TaskIds(Struct):
    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("partitions", Array("int32"), (0, 1)),
    )


class Assignment(Struct):
    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("active_tasks", Array(TaskIds), (0, 1)),
        Field("standby_tasks", Array(TaskIds), (0, 1)),
        Field("warmup_tasks", Array(TaskIds), (0, 1)),
    )


class Member(Struct):
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()
    task_offsets: tuple[TaskOffset, ...] = ()
    task_end_offsets: tuple[TaskOffset, ...] = ()
    assignment: Assignment = own(Assignment)
    target_assignment: Assignment = own(Assignment)
    is_classic: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 1)),
        Field("member_epoch", "int32", (0, 1)),
        Field("instance_id", "string", (0, 1), nullable=(0, 1)),
        Field("rack_id", "string", (0, 1), nullable=(0, 1)),
        Field("client_id", "string", (0, 1)),
        Field("client_host", "string", (0, 1)),
        Field("topology_epoch", "int32", (0, 1)),
        Field("process_id", "string", (0, 1)),
        Field("user_endpoint", Endpoint, (0, 1), nullable=(0, 1)),
        Field("client_tags", Array(KeyValue), (0, 1)),
        Field("task_offsets", Array(TaskOffset), (0, 1)),
        Field("task_end_offsets", Array(TaskOffset), (0, 1)),
        Field("assignment", Assignment, (0, 1)),
        Field("target_assignment", Assignment, (0, 1)),
        Field("is_classic", "bool", (0, 1)),
    )


class TopologyDescriptionNode(Struct):
    name: str = ""
    node_type: int = 0
    source_topics: tuple[str, ...] = ()
    sink_topic: str | None = None
    stores: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 1)),
        Field("node_type", "int8", (1, 1)),
        Field("source_topics", Array("string"), (1, 1)),
        Field("sink_topic", "string", (1, 1), nullable=(1, 1)),
        Field("stores", Array("string"), (1, 1)),
        Field("successors", Array("string"), (1, 1)),
    )


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = ""
    nodes: tuple[TopologyDescriptionNode, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (1, 1)),
        Field("nodes", Array(TopologyDescriptionNode), (1, 1)),
    )


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = own(TopologyDescriptionNode)
    processor: TopologyDescriptionNode = own(TopologyDescriptionNode)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("source", TopologyDescriptionNode, (1, 1)),
        Field("processor", TopologyDescriptionNode, (1, 1)),
    )


class TopologyDescription(Struct):
    subtopologies: tuple[TopologyDescriptionSubtopology, ...] = ()
    global_stores: tuple[TopologyDescriptionGlobalStore, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopologies", Array(TopologyDescriptionSubtopology), (1, 1)),
        Field("global_stores", Array(TopologyDescriptionGlobalStore), (1, 1)),
    )


class DescribedGroup(Struct):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: tuple[Member, ...] = ()
    authorized_operations: int = -2147483648
    topology_description: TopologyDescription | None = None
    topology_description_status: int = 0
    assignor_name: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("group_id", "string", (0, 1)),
        Field("group_state", "string", (0, 1)),
        Field("group_epoch", "int32", (0, 1)),
        Field("assignment_epoch", "int32", (0, 1)),
        Field("topology", Topology, (0, 1), nullable=(0, 1)),
        Field("members", Array(Member), (0, 1)),
        Field("authorized_operations", "int32", (0, 1)),
        Field("topology_description", TopologyDescription, (1, 1), nullable=(1, 1)),
        Field("topology_description_status", "int8", (1, 1)),
        Field("assignor_name", "string", (1, 1), nullable=(1, 1)),
    )


class StreamsGroupDescribeResponse(Response):
    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()

    API_KEY: ClassVar[int] = 89
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("groups", Array(DescribedGroup), (0, 1)),
    )
