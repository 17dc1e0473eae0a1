"""HeartbeatResponse: API key 12, versions 0 to 4.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Response


class HeartbeatResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 4)),
        Field("error_code", "int16", (0, 4)),
    )
