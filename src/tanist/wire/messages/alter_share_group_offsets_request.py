"""AlterShareGroupOffsetsRequest: API key 91, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = 0
    start_offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 0)),
        Field("start_offset", "int64", (0, 0)),
    )


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = ""
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 0)),
        Field("partitions", Array(AlterShareGroupOffsetsRequestPartition), (0, 0)),
    )


class AlterShareGroupOffsetsRequest(Request):
    group_id: str = ""
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...] = ()

    API_KEY: ClassVar[int] = 91
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("topics", Array(AlterShareGroupOffsetsRequestTopic), (0, 0)),
    )
