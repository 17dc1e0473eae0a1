"""DescribeTopicPartitionsRequest: API key 75, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class TopicRequest(Struct):
    name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("name", "string", (0, 0)),)


class Cursor(Struct):
    topic_name: str = ""
    partition_index: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 0)),
        Field("partition_index", "int32", (0, 0)),
    )


class DescribeTopicPartitionsRequest(Request):
    topics: tuple[TopicRequest, ...] = ()
    response_partition_limit: int = 2000
    cursor: Cursor | None = None

    API_KEY: ClassVar[int] = 75
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", Array(TopicRequest), (0, 0)),
        Field("response_partition_limit", "int32", (0, 0)),
        Field("cursor", Cursor, (0, 0), nullable=(0, 0)),
    )
