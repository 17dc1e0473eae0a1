"""AlterConfigsResponse: API key 33, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class AlterConfigsResourceResponse(Struct):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 2)),
        Field("error_message", "string", (0, 2), nullable=(0, 2)),
        Field("resource_type", "int8", (0, 2)),
        Field("resource_name", "string", (0, 2)),
    )


class AlterConfigsResponse(Response):
    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("responses", Array(AlterConfigsResourceResponse), (0, 2)),
    )
