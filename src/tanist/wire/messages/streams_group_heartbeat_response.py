"""StreamsGroupHeartbeatResponse: API key 88, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct, own


class Status(Struct):
    status_code: int = 0
    status_detail: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("status_code", "int8", (0, 1)),
        Field("status_detail", "string", (0, 1)),
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


class TopicPartition(Struct):
    topic: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 1)),
        Field("partitions", Array("int32"), (0, 1)),
    )


class EndpointToPartitions(Struct):
    user_endpoint: Endpoint = own(Endpoint)
    active_partitions: tuple[TopicPartition, ...] = ()
    standby_partitions: tuple[TopicPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user_endpoint", Endpoint, (0, 1)),
        Field("active_partitions", Array(TopicPartition), (0, 1)),
        Field("standby_partitions", Array(TopicPartition), (0, 1)),
    )


class StreamsGroupHeartbeatResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag_legacy: int = 0
    task_offset_interval_ms: int = 0
    acceptable_recovery_lag: int = -1
    status: tuple[Status, ...] | None = ()
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    topology_description_required: bool = False
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: tuple[EndpointToPartitions, ...] | None = None

    API_KEY: ClassVar[int] = 88
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("member_id", "string", (0, 1)),
        Field("member_epoch", "int32", (0, 1)),
        Field("heartbeat_interval_ms", "int32", (0, 1)),
        Field("acceptable_recovery_lag_legacy", "int32", (0, 0)),
        Field("task_offset_interval_ms", "int32", (0, 1)),
        Field("acceptable_recovery_lag", "int64", (1, 1)),
        Field("status", Array(Status), (0, 1), nullable=(0, 1)),
        Field("active_tasks", Array(TaskIds), (0, 1), nullable=(0, 1)),
        Field("standby_tasks", Array(TaskIds), (0, 1), nullable=(0, 1)),
        Field("warmup_tasks", Array(TaskIds), (0, 1), nullable=(0, 1)),
        Field("topology_description_required", "bool", (1, 1)),
        Field("endpoint_information_epoch", "int32", (0, 1)),
        Field("partitions_by_user_endpoint", Array(EndpointToPartitions), (0, 1), nullable=(0, 1)),
    )
