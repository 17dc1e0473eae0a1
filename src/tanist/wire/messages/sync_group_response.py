"""SyncGroupResponse: API key 14, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Response


class SyncGroupResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 5)),
        Field("error_code", "int16", (0, 5)),
        Field("protocol_type", "string", (5, 5), nullable=(5, 5)),
        Field("protocol_name", "string", (5, 5), nullable=(5, 5)),
        Field("assignment", "bytes", (0, 5)),
    )
