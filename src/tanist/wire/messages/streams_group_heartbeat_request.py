"""StreamsGroupHeartbeatRequest: API key 88, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


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


class CopartitionGroup(Struct):
    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("source_topics", Array("int16"), (0, 1)),
        Field("source_topic_regex", Array("int16"), (0, 1)),
        Field("repartition_source_topics", Array("int16"), (0, 1)),
    )


class Subtopology(Struct):
    subtopology_id: str = ""
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("source_topics", Array("string"), (0, 1)),
        Field("source_topic_regex", Array("string"), (0, 1)),
        Field("state_changelog_topics", Array(TopicInfo), (0, 1)),
        Field("repartition_sink_topics", Array("string"), (0, 1)),
        Field("repartition_source_topics", Array(TopicInfo), (0, 1)),
        Field("copartition_groups", Array(CopartitionGroup), (0, 1)),
    )


class Topology(Struct):
    epoch: int = 0
    subtopologies: tuple[Subtopology, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", (0, 1)),
        Field("subtopologies", Array(Subtopology), (0, 1)),
    )


class TaskIds(Struct):
    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", (0, 1)),
        Field("partitions", Array("int32"), (0, 1)),
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


class StreamsGroupHeartbeatRequest(Request):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] | None = None
    task_offsets: tuple[TaskOffset, ...] | None = None
    task_end_offsets: tuple[TaskOffset, ...] | None = None
    shutdown_application: bool = False

    API_KEY: ClassVar[int] = 88
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("member_id", "string", (0, 1)),
        Field("member_epoch", "int32", (0, 1)),
        Field("endpoint_information_epoch", "int32", (0, 1)),
        Field("instance_id", "string", (0, 1), nullable=(0, 1)),
        Field("rack_id", "string", (0, 1), nullable=(0, 1)),
        Field("rebalance_timeout_ms", "int32", (0, 1)),
        Field("topology", Topology, (0, 1), nullable=(0, 1)),
        Field("active_tasks", Array(TaskIds), (0, 1), nullable=(0, 1)),
        Field("standby_tasks", Array(TaskIds), (0, 1), nullable=(0, 1)),
        Field("warmup_tasks", Array(TaskIds), (0, 1), nullable=(0, 1)),
        Field("process_id", "string", (0, 1), nullable=(0, 1)),
        Field("user_endpoint", Endpoint, (0, 1), nullable=(0, 1)),
        Field("client_tags", Array(KeyValue), (0, 1), nullable=(0, 1)),
        Field("task_offsets", Array(TaskOffset), (0, 1), nullable=(0, 1)),
        Field("task_end_offsets", Array(TaskOffset), (0, 1), nullable=(0, 1)),
        Field("shutdown_application", "bool", (0, 1)),
    )
