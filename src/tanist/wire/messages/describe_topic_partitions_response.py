"""DescribeTopicPartitionsResponse: API key 75, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    offline_replicas: tuple[int, ...] = ()
    last_unclean_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 0)),
        Field("partition_index", "int32", (0, 0)),
        Field("leader_id", "int32", (0, 0)),
        Field("leader_epoch", "int32", (0, 0)),
        Field("replica_nodes", Array("int32"), (0, 0)),
        Field("isr_nodes", Array("int32"), (0, 0)),
        Field("eligible_leader_replicas", Array("int32"), (0, 0), nullable=(0, 0)),
        Field("last_known_elr", Array("int32"), (0, 0), nullable=(0, 0)),
        Field("offline_replicas", Array("int32"), (0, 0)),
        Field("last_unclean_epoch", "int32", (0, 0), tag=966, tagged=(0, 0)),
    )


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = 0
    name: str | None = ""
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 0)),
        Field("name", "string", (0, 0), nullable=(0, 0)),
        Field("topic_id", "uuid", (0, 0)),
        Field("is_internal", "bool", (0, 0)),
        Field("partitions", Array(DescribeTopicPartitionsResponsePartition), (0, 0)),
        Field("topic_authorized_operations", "int32", (0, 0)),
    )


class Cursor(Struct):
    topic_name: str = ""
    partition_index: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 0)),
        Field("partition_index", "int32", (0, 0)),
    )


class DescribeTopicPartitionsResponse(Response):
    throttle_time_ms: int = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: Cursor | None = None

    API_KEY: ClassVar[int] = 75
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("topics", Array(DescribeTopicPartitionsResponseTopic), (0, 0)),
        Field("next_cursor", Cursor, (0, 0), nullable=(0, 0)),
    )
