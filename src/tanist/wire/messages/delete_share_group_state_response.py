"""DeleteShareGroupStateResponse: API key 86, version 0.

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

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
    )


class DeleteStateResult(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", Array(PartitionResult), (0, 0)),
    )


class DeleteShareGroupStateResponse(Response):
    results: tuple[DeleteStateResult, ...] = ()

    API_KEY: ClassVar[int] = 86
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("results", Array(DeleteStateResult), (0, 0)),)
