"""FindCoordinatorRequest: API key 10, versions 0 to 6.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request


class FindCoordinatorRequest(Request):
    key: str = ""
    key_type: int = 0
    coordinator_keys: tuple[str, ...] = ()

    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", (0, 3)),
        Field("key_type", "int8", (1, 6)),
        Field("coordinator_keys", Array("string"), (4, 6)),
    )
