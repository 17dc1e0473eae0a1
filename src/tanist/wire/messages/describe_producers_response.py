"""DescribeProducersResponse: API key 61, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class ProducerState(Struct):
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", (0, 0)),
        Field("producer_epoch", "int32", (0, 0)),
        Field("last_sequence", "int32", (0, 0)),
        Field("last_timestamp", "int64", (0, 0)),
        Field("coordinator_epoch", "int32", (0, 0)),
        Field("current_txn_start_offset", "int64", (0, 0)),
    )


class PartitionResponse(Struct):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: tuple[ProducerState, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
        Field("active_producers", Array(ProducerState), (0, 0)),
    )


class TopicResponse(Struct):
    name: str = ""
    partitions: tuple[PartitionResponse, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partitions", Array(PartitionResponse), (0, 0)),
    )


class DescribeProducersResponse(Response):
    throttle_time_ms: int = 0
    topics: tuple[TopicResponse, ...] = ()

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("topics", Array(TopicResponse), (0, 0)),
    )
