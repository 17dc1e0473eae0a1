"""DeleteTopicsRequest: API key 20, versions 1 to 6.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class DeleteTopicState(Struct):
    name: str | None = None
    topic_id: UUID = ZERO_UUID

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (6, 6), nullable=(6, 6)),
        Field("topic_id", "uuid", (6, 6)),
    )


class DeleteTopicsRequest(Request):
    topic_names: tuple[str, ...] = ()
    topics: tuple[DeleteTopicState, ...] = ()
    timeout_ms: int = 0

    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (1, 6)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_names", Array("string"), (1, 5)),
        Field("topics", Array(DeleteTopicState), (6, 6)),
        Field("timeout_ms", "int32", (1, 6)),
    )
