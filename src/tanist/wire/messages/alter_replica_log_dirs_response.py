"""AlterReplicaLogDirsResponse: API key 34, versions 1 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("error_code", "int16", (1, 2)),
    )


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = ""
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (1, 2)),
        Field("partitions", Array(AlterReplicaLogDirPartitionResult), (1, 2)),
    )


class AlterReplicaLogDirsResponse(Response):
    throttle_time_ms: int = 0
    results: tuple[AlterReplicaLogDirTopicResult, ...] = ()

    API_KEY: ClassVar[int] = 34
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 2)),
        Field("results", Array(AlterReplicaLogDirTopicResult), (1, 2)),
    )
