"""ListOffsetsResponse: API key 2, versions 1 to 11.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 11)),
        Field("error_code", "int16", (1, 11)),
        Field("timestamp", "int64", (1, 11)),
        Field("offset", "int64", (1, 11)),
        Field("leader_epoch", "int32", (4, 11)),
    )


class ListOffsetsTopicResponse(Struct):
    name: str = ""
    partitions: tuple[ListOffsetsPartitionResponse, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 11)),
        Field("partitions", Array(ListOffsetsPartitionResponse), (1, 11)),
    )


class ListOffsetsResponse(Response):
    throttle_time_ms: int = 0
    topics: tuple[ListOffsetsTopicResponse, ...] = ()

    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (1, 11)
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (2, 11)),
        Field("topics", Array(ListOffsetsTopicResponse), (1, 11)),
    )
