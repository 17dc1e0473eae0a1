"""OffsetCommitResponse: API key 8, versions 2 to 10.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class OffsetCommitResponsePartition(Struct):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (2, 10)),
        Field("error_code", "int16", (2, 10)),
    )


class OffsetCommitResponseTopic(Struct):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 9)),
        Field("topic_id", "uuid", (10, 10)),
        Field("partitions", Array(OffsetCommitResponsePartition), (2, 10)),
    )


class OffsetCommitResponse(Response):
    throttle_time_ms: int = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (2, 10)
    FLEXIBLE_FROM: ClassVar[int | None] = 8
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (3, 10)),
        Field("topics", Array(OffsetCommitResponseTopic), (2, 10)),
    )
