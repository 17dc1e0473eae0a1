"""DeleteRecordsResponse: API key 21, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 2)),
        Field("low_watermark", "int64", (0, 2)),
        Field("error_code", "int16", (0, 2)),
    )


class DeleteRecordsTopicResult(Struct):
    name: str = ""
    partitions: tuple[DeleteRecordsPartitionResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 2)),
        Field("partitions", Array(DeleteRecordsPartitionResult), (0, 2)),
    )


class DeleteRecordsResponse(Response):
    throttle_time_ms: int = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("topics", Array(DeleteRecordsTopicResult), (0, 2)),
    )
