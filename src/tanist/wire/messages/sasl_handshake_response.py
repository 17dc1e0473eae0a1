"""SaslHandshakeResponse: API key 17, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response


class SaslHandshakeResponse(Response):
    error_code: int = 0
    mechanisms: tuple[str, ...] = ()

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("mechanisms", Array("string"), (0, 1)),
    )
