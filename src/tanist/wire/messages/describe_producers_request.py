"""DescribeProducersRequest: API key 61, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class TopicRequest(Struct):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partition_indexes", Array("int32"), (0, 0)),
    )


class DescribeProducersRequest(Request):
    topics: tuple[TopicRequest, ...] = ()

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topics", Array(TopicRequest), (0, 0)),)
