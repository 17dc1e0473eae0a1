"""PushTelemetryRequest: API key 72, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Field, Request


class PushTelemetryRequest(Request):
    client_instance_id: UUID = ZERO_UUID
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""

    API_KEY: ClassVar[int] = 72
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("client_instance_id", "uuid", (0, 0)),
        Field("subscription_id", "int32", (0, 0)),
        Field("terminating", "bool", (0, 0)),
        Field("compression_type", "int8", (0, 0)),
        Field("metrics", "bytes", (0, 0)),
    )
