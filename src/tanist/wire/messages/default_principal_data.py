"""DefaultPrincipalData: version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Message


class DefaultPrincipalData(Message):
    type: str = ""
    name: str = ""
    token_authenticated: bool = False

    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type", "string", (0, 0)),
        Field("name", "string", (0, 0)),
        Field("token_authenticated", "bool", (0, 0)),
    )
