"""UnregisterControllerResponse: API key 94, version 0. By hand: of Kafka 4.4, which kio does not know."""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Response


class UnregisterControllerResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

    API_KEY: ClassVar[int] = 94
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
    )
