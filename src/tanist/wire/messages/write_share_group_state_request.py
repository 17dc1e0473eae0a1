"""WriteShareGroupStateRequest: API key 85, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class StateBatch(Struct):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", (0, 1)),
        Field("last_offset", "int64", (0, 1)),
        Field("delivery_state", "int8", (0, 1)),
        Field("delivery_count", "int16", (0, 1)),
    )


class PartitionData(Struct):
    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: tuple[StateBatch, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 1)),
        Field("state_epoch", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
        Field("start_offset", "int64", (0, 1)),
        Field("delivery_complete_count", "int32", (1, 1)),
        Field("state_batches", Array(StateBatch), (0, 1)),
    )


class WriteStateData(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", Array(PartitionData), (0, 1)),
    )


class WriteShareGroupStateRequest(Request):
    group_id: str = ""
    topics: tuple[WriteStateData, ...] = ()

    API_KEY: ClassVar[int] = 85
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("topics", Array(WriteStateData), (0, 1)),
    )
