"""DescribeShareGroupOffsetsRequest: API key 90, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 1)),
        Field("partitions", Array("int32"), (0, 1)),
    )


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = ""
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("topics", Array(DescribeShareGroupOffsetsRequestTopic), (0, 1), nullable=(0, 1)),
    )


class DescribeShareGroupOffsetsRequest(Request):
    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...] = ()

    API_KEY: ClassVar[int] = 90
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("groups", Array(DescribeShareGroupOffsetsRequestGroup), (0, 1)),)
