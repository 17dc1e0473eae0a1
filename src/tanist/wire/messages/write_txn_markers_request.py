"""WriteTxnMarkersRequest: API key 27, versions 1 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class WritableTxnMarkerTopic(Struct):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 2)),
        Field("partition_indexes", Array("int32"), (1, 2)),
    )


class WritableTxnMarker(Struct):
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: tuple[WritableTxnMarkerTopic, ...] = ()
    coordinator_epoch: int = 0
    transaction_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", (1, 2)),
        Field("producer_epoch", "int16", (1, 2)),
        Field("transaction_result", "bool", (1, 2)),
        Field("topics", Array(WritableTxnMarkerTopic), (1, 2)),
        Field("coordinator_epoch", "int32", (1, 2)),
        Field("transaction_version", "int8", (2, 2)),
    )


class WriteTxnMarkersRequest(Request):
    markers: tuple[WritableTxnMarker, ...] = ()

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("markers", Array(WritableTxnMarker), (1, 2)),)
