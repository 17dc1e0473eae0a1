"""RenewDelegationTokenRequest: API key 39, versions 1 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Request


class RenewDelegationTokenRequest(Request):
    hmac: bytes = b""
    renew_period_ms: int = 0

    API_KEY: ClassVar[int] = 39
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("hmac", "bytes", (1, 2)),
        Field("renew_period_ms", "int64", (1, 2)),
    )
