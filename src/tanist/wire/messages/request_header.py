"""RequestHeader: versions 1 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Message


class RequestHeader(Message):
    request_api_key: int = 0
    request_api_version: int = 0
    correlation_id: int = 0
    client_id: str | None = ""

    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("request_api_key", "int16", (1, 2)),
        Field("request_api_version", "int16", (1, 2)),
        Field("correlation_id", "int32", (1, 2)),
        Field("client_id", "string", (1, 2), nullable=(1, 2), compact=False),
    )
