"""DescribeLogDirsResponse: API key 35, versions 1 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class DescribeLogDirsPartition(Struct):
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 5)),
        Field("partition_size", "int64", (1, 5)),
        Field("offset_lag", "int64", (1, 5)),
        Field("is_future_key", "bool", (1, 5)),
    )


class DescribeLogDirsTopic(Struct):
    name: str = ""
    partitions: tuple[DescribeLogDirsPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 5)),
        Field("partitions", Array(DescribeLogDirsPartition), (1, 5)),
    )


class DescribeLogDirsResult(Struct):
    error_code: int = 0
    log_dir: str = ""
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 5)),
        Field("log_dir", "string", (1, 5)),
        Field("topics", Array(DescribeLogDirsTopic), (1, 5)),
        Field("total_bytes", "int64", (4, 5)),
        Field("usable_bytes", "int64", (4, 5)),
        Field("is_cordoned", "bool", (5, 5)),
    )


class DescribeLogDirsResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    results: tuple[DescribeLogDirsResult, ...] = ()

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[tuple[int, int]] = (1, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 5)),
        Field("error_code", "int16", (3, 5)),
        Field("results", Array(DescribeLogDirsResult), (1, 5)),
    )
