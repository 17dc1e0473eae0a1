"""OffsetForLeaderEpochResponse: API key 23, versions 2 to 4.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class EpochEndOffset(Struct):
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (2, 4)),
        Field("partition", "int32", (2, 4)),
        Field("leader_epoch", "int32", (2, 4)),
        Field("end_offset", "int64", (2, 4)),
    )


class OffsetForLeaderTopicResult(Struct):
    topic: str = ""
    partitions: tuple[EpochEndOffset, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (2, 4)),
        Field("partitions", Array(EpochEndOffset), (2, 4)),
    )


class OffsetForLeaderEpochResponse(Response):
    throttle_time_ms: int = 0
    topics: tuple[OffsetForLeaderTopicResult, ...] = ()

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (2, 4)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (2, 4)),
        Field("topics", Array(OffsetForLeaderTopicResult), (2, 4)),
    )
