"""ExpireDelegationTokenRequest: API key 40, versions 1 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Request


class ExpireDelegationTokenRequest(Request):
    hmac: bytes = b""
    expiry_time_period_ms: int = 0

    API_KEY: ClassVar[int] = 40
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("hmac", "bytes", (1, 2)),
        Field("expiry_time_period_ms", "int64", (1, 2)),
    )
