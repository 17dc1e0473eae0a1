"""ListPartitionReassignmentsRequest: API key 46, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class ListPartitionReassignmentsTopics(Struct):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partition_indexes", Array("int32"), (0, 0)),
    )


class ListPartitionReassignmentsRequest(Request):
    timeout_ms: int = 60000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", (0, 0)),
        Field("topics", Array(ListPartitionReassignmentsTopics), (0, 0), nullable=(0, 0)),
    )
