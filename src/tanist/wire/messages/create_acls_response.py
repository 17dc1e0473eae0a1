"""CreateAclsResponse: API key 30, versions 1 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class AclCreationResult(Struct):
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 3)),
        Field("error_message", "string", (1, 3), nullable=(1, 3)),
    )


class CreateAclsResponse(Response):
    throttle_time_ms: int = 0
    results: tuple[AclCreationResult, ...] = ()

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 3)),
        Field("results", Array(AclCreationResult), (1, 3)),
    )
