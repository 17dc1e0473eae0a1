"""DeleteTopicsResponse: API key 20, versions 1 to 6.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class DeletableTopicResult(Struct):
    name: str | None = ""
    topic_id: UUID = ZERO_UUID
    error_code: int = 0
    error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 6), nullable=(6, 6)),
        Field("topic_id", "uuid", (6, 6)),
        Field("error_code", "int16", (1, 6)),
        Field("error_message", "string", (5, 6), nullable=(5, 6)),
    )


class DeleteTopicsResponse(Response):
    throttle_time_ms: int = 0
    responses: tuple[DeletableTopicResult, ...] = ()

    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (1, 6)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 6)),
        Field("responses", Array(DeletableTopicResult), (1, 6)),
    )
