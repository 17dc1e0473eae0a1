"""EnvelopeResponse: API key 58, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Response


class EnvelopeResponse(Response):
    response_data: bytes | None = None
    error_code: int = 0
    committed_offset: int = -1

    API_KEY: ClassVar[int] = 58
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("response_data", "bytes", (0, 0), nullable=(0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("committed_offset", "int64", (0, 0), tag=966, tagged=(0, 0)),
    )
