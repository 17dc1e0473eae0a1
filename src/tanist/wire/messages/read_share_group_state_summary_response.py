"""ReadShareGroupStateSummaryResponse: API key 87, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class PartitionResult(Struct):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("state_epoch", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
        Field("start_offset", "int64", (0, 1)),
        Field("delivery_complete_count", "int32", (1, 1)),
    )


class ReadStateSummaryResult(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", Array(PartitionResult), (0, 1)),
    )


class ReadShareGroupStateSummaryResponse(Response):
    results: tuple[ReadStateSummaryResult, ...] = ()

    API_KEY: ClassVar[int] = 87
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("results", Array(ReadStateSummaryResult), (0, 1)),)
