"""AlterClientQuotasResponse: API key 49, versions 0 to 1.

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


class EntryData(Struct):
    error_code: int = 0
    error_message: str | None = ""
    entity: tuple[EntityData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("entity", Array(EntityData), (0, 1)),
    )


class AlterClientQuotasResponse(Response):
    throttle_time_ms: int = 0
    entries: tuple[EntryData, ...] = ()

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("entries", Array(EntryData), (0, 1)),
    )
