"""StreamsGroupDescribeResponse: API key 89, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct, own


class KeyValue(Struct):
    key: str = ""
    value: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 0)),
        Field("value", "string", (0, 0)),
    )


class TopicInfo(Struct):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: tuple[KeyValue, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partitions", "int32", (0, 0)),
        Field("replication_factor", "int16", (0, 0)),
        Field("topic_configs", Array(KeyValue), (0, 0)),
    )


class Subtopology(Struct):
    subtopology_id: str = ""
    source_topics: tuple[str, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 0)),
        Field("source_topics", Array("string"), (0, 0)),
        Field("repartition_sink_topics", Array("string"), (0, 0)),
        Field("state_changelog_topics", Array(TopicInfo), (0, 0)),
        Field("repartition_source_topics", Array(TopicInfo), (0, 0)),
    )


class Topology(Struct):
    epoch: int = 0
    subtopologies: tuple[Subtopology, ...] | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", (0, 0)),
        Field("subtopologies", Array(Subtopology), (0, 0), nullable=(0, 0)),
    )


class Endpoint(Struct):
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("host", "string", (0, 0)),
        Field("port", "uint16", (0, 0)),
    )


class TaskOffset(Struct):
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 0)),
        Field("partition", "int32", (0, 0)),
        Field("offset", "int64", (0, 0)),
    )


class TaskIds(Struct):
    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 0)),
        Field("partitions", Array("int32"), (0, 0)),
    )


class Assignment(Struct):
    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("active_tasks", Array(TaskIds), (0, 0)),
        Field("standby_tasks", Array(TaskIds), (0, 0)),
        Field("warmup_tasks", Array(TaskIds), (0, 0)),
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
        Field("member_id", "string", (0, 0)),
        Field("member_epoch", "int32", (0, 0)),
        Field("instance_id", "string", (0, 0), nullable=(0, 0)),
        Field("rack_id", "string", (0, 0), nullable=(0, 0)),
        Field("client_id", "string", (0, 0)),
        Field("client_host", "string", (0, 0)),
        Field("topology_epoch", "int32", (0, 0)),
        Field("process_id", "string", (0, 0)),
        Field("user_endpoint", Endpoint, (0, 0), nullable=(0, 0)),
        Field("client_tags", Array(KeyValue), (0, 0)),
        Field("task_offsets", Array(TaskOffset), (0, 0)),
        Field("task_end_offsets", Array(TaskOffset), (0, 0)),
        Field("assignment", Assignment, (0, 0)),
        Field("target_assignment", Assignment, (0, 0)),
        Field("is_classic", "bool", (0, 0)),
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

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
        Field("group_id", "string", (0, 0)),
        Field("group_state", "string", (0, 0)),
        Field("group_epoch", "int32", (0, 0)),
        Field("assignment_epoch", "int32", (0, 0)),
        Field("topology", Topology, (0, 0), nullable=(0, 0)),
        Field("members", Array(Member), (0, 0)),
        Field("authorized_operations", "int32", (0, 0)),
    )


class StreamsGroupDescribeResponse(Response):
    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()

    API_KEY: ClassVar[int] = 89
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("groups", Array(DescribedGroup), (0, 0)),
    )
