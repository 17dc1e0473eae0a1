"""ListOffsetsRequest: API key 2, versions 1 to 11.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class ListOffsetsPartition(Struct):
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 11)),
        Field("current_leader_epoch", "int32", (4, 11)),
        Field("timestamp", "int64", (1, 11)),
    )


class ListOffsetsTopic(Struct):
    name: str = ""
    partitions: tuple[ListOffsetsPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 11)),
        Field("partitions", Array(ListOffsetsPartition), (1, 11)),
    )


class ListOffsetsRequest(Request):
    replica_id: int = 0
    isolation_level: int = 0
    topics: tuple[ListOffsetsTopic, ...] = ()
    timeout_ms: int = 0

    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (1, 11)
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", (1, 11)),
        Field("isolation_level", "int8", (2, 11)),
        Field("topics", Array(ListOffsetsTopic), (1, 11)),
        Field("timeout_ms", "int32", (10, 11)),
    )
