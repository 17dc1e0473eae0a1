"""GetTelemetrySubscriptionsRequest: API key 71, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Field, Request


class GetTelemetrySubscriptionsRequest(Request):
    client_instance_id: UUID = ZERO_UUID

    API_KEY: ClassVar[int] = 71
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("client_instance_id", "uuid", (0, 0)),)
