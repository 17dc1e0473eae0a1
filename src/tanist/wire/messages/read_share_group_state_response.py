"""ReadShareGroupStateResponse: API key 84, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class StateBatch(Struct):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", (0, 0)),
        Field("last_offset", "int64", (0, 0)),
        Field("delivery_state", "int8", (0, 0)),
        Field("delivery_count", "int16", (0, 0)),
    )


class PartitionResult(Struct):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: tuple[StateBatch, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
        Field("state_epoch", "int32", (0, 0)),
        Field("start_offset", "int64", (0, 0)),
        Field("state_batches", Array(StateBatch), (0, 0)),
    )


class ReadStateResult(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", Array(PartitionResult), (0, 0)),
    )


class ReadShareGroupStateResponse(Response):
    results: tuple[ReadStateResult, ...] = ()

    API_KEY: ClassVar[int] = 84
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("results", Array(ReadStateResult), (0, 0)),)
