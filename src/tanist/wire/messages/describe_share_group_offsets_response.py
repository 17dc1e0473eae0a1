"""DescribeShareGroupOffsetsResponse: API key 90, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 1)),
        Field("start_offset", "int64", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
        Field("lag", "int64", (1, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
    )


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 1)),
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", Array(DescribeShareGroupOffsetsResponsePartition), (0, 1)),
    )


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = ""
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...] = ()
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("topics", Array(DescribeShareGroupOffsetsResponseTopic), (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
    )


class DescribeShareGroupOffsetsResponse(Response):
    throttle_time_ms: int = 0
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...] = ()

    API_KEY: ClassVar[int] = 90
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("groups", Array(DescribeShareGroupOffsetsResponseGroup), (0, 1)),
    )
