"""TxnOffsetCommitResponse: API key 28, versions 0 to 6.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 6)),
        Field("error_code", "int16", (0, 6)),
    )


class TxnOffsetCommitResponseTopic(Struct):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 5)),
        Field("topic_id", "uuid", (6, 6)),
        Field("partitions", Array(TxnOffsetCommitResponsePartition), (0, 6)),
    )


class TxnOffsetCommitResponse(Response):
    throttle_time_ms: int = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 6)),
        Field("topics", Array(TxnOffsetCommitResponseTopic), (0, 6)),
    )
