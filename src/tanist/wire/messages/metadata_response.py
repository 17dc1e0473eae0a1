"""MetadataResponse: API key 3, versions 0 to 13.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class MetadataResponseBroker(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (0, 13)),
        Field("host", "string", (0, 13)),
        Field("port", "int32", (0, 13)),
        Field("rack", "string", (1, 13), nullable=(1, 13)),
    )


class MetadataResponsePartition(Struct):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 13)),
        Field("partition_index", "int32", (0, 13)),
        Field("leader_id", "int32", (0, 13)),
        Field("leader_epoch", "int32", (7, 13)),
        Field("replica_nodes", Array("int32"), (0, 13)),
        Field("isr_nodes", Array("int32"), (0, 13)),
        Field("offline_replicas", Array("int32"), (5, 13)),
    )


class MetadataResponseTopic(Struct):
    error_code: int = 0
    name: str | None = ""
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[MetadataResponsePartition, ...] = ()
    topic_authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 13)),
        Field("name", "string", (0, 13), nullable=(12, 13)),
        Field("topic_id", "uuid", (10, 13)),
        Field("is_internal", "bool", (1, 13)),
        Field("partitions", Array(MetadataResponsePartition), (0, 13)),
        Field("topic_authorized_operations", "int32", (8, 13)),
    )


class MetadataResponse(Response):
    throttle_time_ms: int = 0
    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: tuple[MetadataResponseTopic, ...] = ()
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0

    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE_FROM: ClassVar[int | None] = 9
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (3, 13)),
        Field("brokers", Array(MetadataResponseBroker), (0, 13)),
        Field("cluster_id", "string", (2, 13), nullable=(2, 13)),
        Field("controller_id", "int32", (1, 13)),
        Field("topics", Array(MetadataResponseTopic), (0, 13)),
        Field("cluster_authorized_operations", "int32", (8, 10)),
        Field("error_code", "int16", (13, 13)),
    )
