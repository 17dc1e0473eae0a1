"""GetTelemetrySubscriptionsResponse: API key 71, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response


class GetTelemetrySubscriptionsResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: UUID = ZERO_UUID
    subscription_id: int = 0
    accepted_compression_types: tuple[int, ...] = ()
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: tuple[str, ...] = ()

    API_KEY: ClassVar[int] = 71
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("client_instance_id", "uuid", (0, 0)),
        Field("subscription_id", "int32", (0, 0)),
        Field("accepted_compression_types", Array("int8"), (0, 0)),
        Field("push_interval_ms", "int32", (0, 0)),
        Field("telemetry_max_bytes", "int32", (0, 0)),
        Field("delta_temporality", "bool", (0, 0)),
        Field("requested_metrics", Array("string"), (0, 0)),
    )
