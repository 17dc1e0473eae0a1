"""DescribeConfigsResponse: API key 32, versions 1 to 4.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class DescribeConfigsSynonym(Struct):
    name: str = ""
    value: str | None = ""
    source: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 4)),
        Field("value", "string", (1, 4), nullable=(1, 4)),
        Field("source", "int8", (1, 4)),
    )


class DescribeConfigsResourceResult(Struct):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    config_type: int = 0
    documentation: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 4)),
        Field("value", "string", (1, 4), nullable=(1, 4)),
        Field("read_only", "bool", (1, 4)),
        Field("config_source", "int8", (1, 4)),
        Field("is_sensitive", "bool", (1, 4)),
        Field("synonyms", Array(DescribeConfigsSynonym), (1, 4)),
        Field("config_type", "int8", (3, 4)),
        Field("documentation", "string", (3, 4), nullable=(3, 4)),
    )


class DescribeConfigsResult(Struct):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: tuple[DescribeConfigsResourceResult, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 4)),
        Field("error_message", "string", (1, 4), nullable=(1, 4)),
        Field("resource_type", "int8", (1, 4)),
        Field("resource_name", "string", (1, 4)),
        Field("configs", Array(DescribeConfigsResourceResult), (1, 4)),
    )


class DescribeConfigsResponse(Response):
    throttle_time_ms: int = 0
    results: tuple[DescribeConfigsResult, ...] = ()

    API_KEY: ClassVar[int] = 32
    VERSIONS: ClassVar[tuple[int, int]] = (1, 4)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 4)),
        Field("results", Array(DescribeConfigsResult), (1, 4)),
    )
