"""ReadShareGroupStateSummaryRequest: API key 87, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class PartitionData(Struct):
    partition: int = 0
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
    )


class ReadStateSummaryData(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", Array(PartitionData), (0, 1)),
    )


class ReadShareGroupStateSummaryRequest(Request):
    group_id: str = ""
    topics: tuple[ReadStateSummaryData, ...] = ()

    API_KEY: ClassVar[int] = 87
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("topics", Array(ReadStateSummaryData), (0, 1)),
    )
