"""DescribeClusterResponse: API key 60, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class DescribeClusterBroker(Struct):
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 2)),
        Field("host", "string", (0, 2)),
        Field("port", "int32", (0, 2)),
        Field("rack", "string", (0, 2), nullable=(0, 2)),
        Field("is_fenced", "bool", (2, 2)),
    )


class DescribeClusterResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: int = -2147483648
    metadata_age_ms: int = -1

    API_KEY: ClassVar[int] = 60
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (0, 2), nullable=(0, 2)),
        Field("endpoint_type", "int8", (1, 2)),
        Field("cluster_id", "string", (0, 2)),
        Field("controller_id", "int32", (0, 2)),
        Field("brokers", Array(DescribeClusterBroker), (0, 2)),
        Field("cluster_authorized_operations", "int32", (0, 2)),
        Field("metadata_age_ms", "int64", (0, 2), tag=966, tagged=(0, 2)),
    )
