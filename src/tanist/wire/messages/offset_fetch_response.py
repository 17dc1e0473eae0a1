"""OffsetFetchResponse: API key 9, versions 1 to 10.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class OffsetFetchResponsePartition(Struct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 7)),
        Field("committed_offset", "int64", (1, 7)),
        Field("committed_leader_epoch", "int32", (5, 7)),
        Field("metadata", "string", (1, 7), nullable=(1, 7)),
        Field("error_code", "int16", (1, 7)),
    )


class OffsetFetchResponseTopic(Struct):
    name: str = ""
    partitions: tuple[OffsetFetchResponsePartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 7)),
        Field("partitions", Array(OffsetFetchResponsePartition), (1, 7)),
    )


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (8, 10)),
        Field("committed_offset", "int64", (8, 10)),
        Field("committed_leader_epoch", "int32", (8, 10)),
        Field("metadata", "string", (8, 10), nullable=(8, 10)),
        Field("error_code", "int16", (8, 10)),
    )


class OffsetFetchResponseTopics(Struct):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (8, 9)),
        Field("topic_id", "uuid", (10, 10)),
        Field("partitions", Array(OffsetFetchResponsePartitions), (8, 10)),
    )


class OffsetFetchResponseGroup(Struct):
    group_id: str = ""
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (8, 10)),
        Field("topics", Array(OffsetFetchResponseTopics), (8, 10)),
        Field("error_code", "int16", (8, 10)),
    )


class OffsetFetchResponse(Response):
    throttle_time_ms: int = 0
    topics: tuple[OffsetFetchResponseTopic, ...] = ()
    error_code: int = 0
    groups: tuple[OffsetFetchResponseGroup, ...] = ()

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[tuple[int, int]] = (1, 10)
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (3, 10)),
        Field("topics", Array(OffsetFetchResponseTopic), (1, 7)),
        Field("error_code", "int16", (2, 7)),
        Field("groups", Array(OffsetFetchResponseGroup), (8, 10)),
    )
