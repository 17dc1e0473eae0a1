"""DeleteRecordsRequest: API key 21, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class DeleteRecordsPartition(Struct):
    partition_index: int = 0
    offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 2)),
        Field("offset", "int64", (0, 2)),
    )


class DeleteRecordsTopic(Struct):
    name: str = ""
    partitions: tuple[DeleteRecordsPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 2)),
        Field("partitions", Array(DeleteRecordsPartition), (0, 2)),
    )


class DeleteRecordsRequest(Request):
    topics: tuple[DeleteRecordsTopic, ...] = ()
    timeout_ms: int = 0

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", Array(DeleteRecordsTopic), (0, 2)),
        Field("timeout_ms", "int32", (0, 2)),
    )
