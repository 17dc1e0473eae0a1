"""DeleteGroupsResponse: API key 42, versions 0 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class DeletableGroupResult(Struct):
    group_id: str = ""
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 3)),
        Field("error_code", "int16", (0, 3)),
        Field("error_message", "string", (3, 3), nullable=(3, 3)),
    )


class DeleteGroupsResponse(Response):
    throttle_time_ms: int = 0
    results: tuple[DeletableGroupResult, ...] = ()

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 3)),
        Field("results", Array(DeletableGroupResult), (0, 3)),
    )
