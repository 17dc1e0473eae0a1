"""AlterClientQuotasRequest: API key 49, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class EntityData(Struct):
    entity_type: str = ""
    entity_name: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", (0, 1)),
        Field("entity_name", "string", (0, 1), nullable=(0, 1)),
    )


class OpData(Struct):
    key: str = ""
    value: float = 0.0
    remove: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 1)),
        Field("value", "float64", (0, 1)),
        Field("remove", "bool", (0, 1)),
    )


class EntryData(Struct):
    entity: tuple[EntityData, ...] = ()
    ops: tuple[OpData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity", Array(EntityData), (0, 1)),
        Field("ops", Array(OpData), (0, 1)),
    )


class AlterClientQuotasRequest(Request):
    entries: tuple[EntryData, ...] = ()
    validate_only: bool = False

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entries", Array(EntryData), (0, 1)),
        Field("validate_only", "bool", (0, 1)),
    )
