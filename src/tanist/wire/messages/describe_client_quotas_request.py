"""DescribeClientQuotasRequest: API key 48, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class ComponentData(Struct):
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("entity_type", "string", (0, 1)),
        Field("match_type", "int8", (0, 1)),
        Field("match", "string", (0, 1), nullable=(0, 1)),
    )


class DescribeClientQuotasRequest(Request):
    components: tuple[ComponentData, ...] = ()
    strict: bool = False

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("components", Array(ComponentData), (0, 1)),
        Field("strict", "bool", (0, 1)),
    )
