"""DeleteShareGroupStateRequest: API key 86, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class PartitionData(Struct):
    partition: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("partition", "int32", (0, 0)),)


class DeleteStateData(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", Array(PartitionData), (0, 0)),
    )


class DeleteShareGroupStateRequest(Request):
    group_id: str = ""
    topics: tuple[DeleteStateData, ...] = ()

    API_KEY: ClassVar[int] = 86
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("topics", Array(DeleteStateData), (0, 0)),
    )
