"""OffsetDeleteResponse: API key 47, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
    )


class OffsetDeleteResponseTopic(Struct):
    name: str = ""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partitions", Array(OffsetDeleteResponsePartition), (0, 0)),
    )


class OffsetDeleteResponse(Response):
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 0)),
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("topics", Array(OffsetDeleteResponseTopic), (0, 0)),
    )
