"""OffsetDeleteRequest: API key 47, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class OffsetDeleteRequestPartition(Struct):
    partition_index: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("partition_index", "int32", (0, 0)),)


class OffsetDeleteRequestTopic(Struct):
    name: str = ""
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partitions", Array(OffsetDeleteRequestPartition), (0, 0)),
    )


class OffsetDeleteRequest(Request):
    group_id: str = ""
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("topics", Array(OffsetDeleteRequestTopic), (0, 0)),
    )
