"""AlterUserScramCredentialsResponse: API key 51, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class AlterUserScramCredentialsResult(Struct):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user", "string", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
    )


class AlterUserScramCredentialsResponse(Response):
    throttle_time_ms: int = 0
    results: tuple[AlterUserScramCredentialsResult, ...] = ()

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("results", Array(AlterUserScramCredentialsResult), (0, 0)),
    )
