"""AlterConfigsRequest: API key 33, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class AlterableConfig(Struct):
    name: str = ""
    value: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 2)),
        Field("value", "string", (0, 2), nullable=(0, 2)),
    )


class AlterConfigsResource(Struct):
    resource_type: int = 0
    resource_name: str = ""
    configs: tuple[AlterableConfig, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", (0, 2)),
        Field("resource_name", "string", (0, 2)),
        Field("configs", Array(AlterableConfig), (0, 2)),
    )


class AlterConfigsRequest(Request):
    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: bool = False

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resources", Array(AlterConfigsResource), (0, 2)),
        Field("validate_only", "bool", (0, 2)),
    )
