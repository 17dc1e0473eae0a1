"""DeleteShareGroupOffsetsRequest: API key 92, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_name", "string", (0, 0)),)


class DeleteShareGroupOffsetsRequest(Request):
    group_id: str = ""
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...] = ()

    API_KEY: ClassVar[int] = 92
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 0)),
        Field("topics", Array(DeleteShareGroupOffsetsRequestTopic), (0, 0)),
    )
