"""IncrementalAlterConfigsRequest: API key 44, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class AlterableConfig(Struct):
    name: str = ""
    config_operation: int = 0
    value: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("config_operation", "int8", (0, 1)),
        Field("value", "string", (0, 1), nullable=(0, 1)),
    )


class AlterConfigsResource(Struct):
    resource_type: int = 0
    resource_name: str = ""
    configs: tuple[AlterableConfig, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", (0, 1)),
        Field("resource_name", "string", (0, 1)),
        Field("configs", Array(AlterableConfig), (0, 1)),
    )


class IncrementalAlterConfigsRequest(Request):
    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: bool = False

    API_KEY: ClassVar[int] = 44
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resources", Array(AlterConfigsResource), (0, 1)),
        Field("validate_only", "bool", (0, 1)),
    )
