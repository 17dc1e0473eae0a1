"""ProduceRequest: API key 0, versions 3 to 13.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class PartitionProduceData(Struct):
    index: int = 0
    records: bytes | memoryview | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", (3, 13)),
        Field("records", "records", (3, 13), nullable=(3, 13)),
    )


class TopicProduceData(Struct):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partition_data: tuple[PartitionProduceData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (3, 12)),
        Field("topic_id", "uuid", (13, 13)),
        Field("partition_data", Array(PartitionProduceData), (3, 13)),
    )


class ProduceRequest(Request):
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: tuple[TopicProduceData, ...] = ()

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (3, 13)
    FLEXIBLE_FROM: ClassVar[int | None] = 9
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (3, 13), nullable=(3, 13)),
        Field("acks", "int16", (3, 13)),
        Field("timeout_ms", "int32", (3, 13)),
        Field("topic_data", Array(TopicProduceData), (3, 13)),
    )
