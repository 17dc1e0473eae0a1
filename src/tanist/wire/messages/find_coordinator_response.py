"""FindCoordinatorResponse: API key 10, versions 0 to 6.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class Coordinator(Struct):
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (4, 6)),
        Field("node_id", "int32", (4, 6)),
        Field("host", "string", (4, 6)),
        Field("port", "int32", (4, 6)),
        Field("error_code", "int16", (4, 6)),
        Field("error_message", "string", (4, 6), nullable=(4, 6)),
    )


class FindCoordinatorResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: tuple[Coordinator, ...] = ()

    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 6)),
        Field("error_code", "int16", (0, 3)),
        Field("error_message", "string", (1, 3), nullable=(1, 3)),
        Field("node_id", "int32", (0, 3)),
        Field("host", "string", (0, 3)),
        Field("port", "int32", (0, 3)),
        Field("coordinators", Array(Coordinator), (4, 6)),
    )
