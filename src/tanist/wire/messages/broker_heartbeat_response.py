"""BrokerHeartbeatResponse: API key 63, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Response


class BrokerHeartbeatResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False

    API_KEY: ClassVar[int] = 63
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 2)),
        Field("error_code", "int16", (0, 2)),
        Field("is_caught_up", "bool", (0, 2)),
        Field("is_fenced", "bool", (0, 2)),
        Field("should_shut_down", "bool", (0, 2)),
    )
