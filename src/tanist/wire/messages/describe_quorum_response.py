"""DescribeQuorumResponse: API key 55, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class ReplicaState(Struct):
    replica_id: int = 0
    replica_directory_id: UUID = ZERO_UUID
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", (0, 2)),
        Field("replica_directory_id", "uuid", (2, 2)),
        Field("log_end_offset", "int64", (0, 2)),
        Field("last_fetch_timestamp", "int64", (1, 2)),
        Field("last_caught_up_timestamp", "int64", (1, 2)),
    )


class PartitionData(Struct):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (2, 2), nullable=(2, 2)),
        Field("leader_id", "int32", (0, 2)),
        Field("leader_epoch", "int32", (0, 2)),
        Field("high_watermark", "int64", (0, 2)),
        Field("current_voters", Array(ReplicaState), (0, 2)),
        Field("observers", Array(ReplicaState), (0, 2)),
    )


class TopicData(Struct):
    topic_name: str = ""
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 2)),
        Field("partitions", Array(PartitionData), (0, 2)),
    )


class Listener(Struct):
    name: str = ""
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 2)),
        Field("host", "string", (2, 2)),
        Field("port", "uint16", (2, 2)),
    )


class Node(Struct):
    node_id: int = 0
    listeners: tuple[Listener, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (2, 2)),
        Field("listeners", Array(Listener), (2, 2)),
    )


class DescribeQuorumResponse(Response):
    error_code: int = 0
    error_message: str | None = ""
    topics: tuple[TopicData, ...] = ()
    nodes: tuple[Node, ...] = ()

    API_KEY: ClassVar[int] = 55
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (2, 2), nullable=(2, 2)),
        Field("topics", Array(TopicData), (0, 2)),
        Field("nodes", Array(Node), (2, 2)),
    )
