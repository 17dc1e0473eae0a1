"""DescribeLogDirsRequest: API key 35, versions 1 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class DescribableLogDirTopic(Struct):
    topic: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (1, 5)),
        Field("partitions", Array("int32"), (1, 5)),
    )


class DescribeLogDirsRequest(Request):
    topics: tuple[DescribableLogDirTopic, ...] | None = ()

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[tuple[int, int]] = (1, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topics", Array(DescribableLogDirTopic), (1, 5), nullable=(1, 5)),)
