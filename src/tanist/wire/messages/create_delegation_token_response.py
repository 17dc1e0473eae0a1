"""CreateDelegationTokenResponse: API key 38, versions 1 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Response


class CreateDelegationTokenResponse(Response):
    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0

    API_KEY: ClassVar[int] = 38
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 3)),
        Field("principal_type", "string", (1, 3)),
        Field("principal_name", "string", (1, 3)),
        Field("token_requester_principal_type", "string", (3, 3)),
        Field("token_requester_principal_name", "string", (3, 3)),
        Field("issue_timestamp_ms", "int64", (1, 3)),
        Field("expiry_timestamp_ms", "int64", (1, 3)),
        Field("max_timestamp_ms", "int64", (1, 3)),
        Field("token_id", "string", (1, 3)),
        Field("hmac", "bytes", (1, 3)),
        Field("throttle_time_ms", "int32", (1, 3)),
    )
