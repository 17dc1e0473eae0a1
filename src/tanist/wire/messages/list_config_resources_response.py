"""ListConfigResourcesResponse: API key 74, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class ConfigResource(Struct):
    resource_name: str = ""
    resource_type: int = 16

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_name", "string", (0, 1)),
        Field("resource_type", "int8", (1, 1)),
    )


class ListConfigResourcesResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: tuple[ConfigResource, ...] = ()

    API_KEY: ClassVar[int] = 74
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("config_resources", Array(ConfigResource), (0, 1)),
    )
