"""DescribeQuorumRequest: API key 55, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class PartitionData(Struct):
    partition_index: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("partition_index", "int32", (0, 2)),)


class TopicData(Struct):
    topic_name: str = ""
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 2)),
        Field("partitions", Array(PartitionData), (0, 2)),
    )


class DescribeQuorumRequest(Request):
    topics: tuple[TopicData, ...] = ()

    API_KEY: ClassVar[int] = 55
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topics", Array(TopicData), (0, 2)),)
