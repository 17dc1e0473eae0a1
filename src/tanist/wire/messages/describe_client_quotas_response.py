"""DescribeClientQuotasResponse: API key 48, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class EntityData(Struct):
    entity_type: str = ""
    entity_name: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", (0, 1)),
        Field("entity_name", "string", (0, 1), nullable=(0, 1)),
    )


class ValueData(Struct):
    key: str = ""
    value: float = 0.0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 1)),
        Field("value", "float64", (0, 1)),
    )


class EntryData(Struct):
    entity: tuple[EntityData, ...] = ()
    values: tuple[ValueData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity", Array(EntityData), (0, 1)),
        Field("values", Array(ValueData), (0, 1)),
    )


class DescribeClientQuotasResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: tuple[EntryData, ...] | None = ()

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("entries", Array(EntryData), (0, 1), nullable=(0, 1)),
    )
