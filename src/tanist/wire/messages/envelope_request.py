"""EnvelopeRequest: API key 58, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Request


class EnvelopeRequest(Request):
    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""

    API_KEY: ClassVar[int] = 58
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("request_data", "bytes", (0, 0)),
        Field("request_principal", "bytes", (0, 0), nullable=(0, 0)),
        Field("client_host_address", "bytes", (0, 0)),
    )
