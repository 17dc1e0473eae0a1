"""AlterPartitionReassignmentsRequest: API key 45, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class ReassignablePartition(Struct):
    partition_index: int = 0
    replicas: tuple[int, ...] | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 1)),
        Field("replicas", Array("int32"), (0, 1), nullable=(0, 1)),
    )


class ReassignableTopic(Struct):
    name: str = ""
    partitions: tuple[ReassignablePartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("partitions", Array(ReassignablePartition), (0, 1)),
    )


class AlterPartitionReassignmentsRequest(Request):
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: tuple[ReassignableTopic, ...] = ()

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", (0, 1)),
        Field("allow_replication_factor_change", "bool", (1, 1)),
        Field("topics", Array(ReassignableTopic), (0, 1)),
    )
