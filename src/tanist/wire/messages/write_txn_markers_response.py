"""WriteTxnMarkersResponse: API key 27, versions 1 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("error_code", "int16", (1, 2)),
    )


class WritableTxnMarkerTopicResult(Struct):
    name: str = ""
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 2)),
        Field("partitions", Array(WritableTxnMarkerPartitionResult), (1, 2)),
    )


class WritableTxnMarkerResult(Struct):
    producer_id: int = 0
    topics: tuple[WritableTxnMarkerTopicResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", (1, 2)),
        Field("topics", Array(WritableTxnMarkerTopicResult), (1, 2)),
    )


class WriteTxnMarkersResponse(Response):
    markers: tuple[WritableTxnMarkerResult, ...] = ()

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("markers", Array(WritableTxnMarkerResult), (1, 2)),)
