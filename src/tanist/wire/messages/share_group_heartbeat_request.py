"""ShareGroupHeartbeatRequest: API key 76, version 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request


class ShareGroupHeartbeatRequest(Request):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None

    API_KEY: ClassVar[int] = 76
    VERSIONS: ClassVar[tuple[int, int]] = (1, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (1, 1)),
        Field("member_id", "string", (1, 1)),
        Field("member_epoch", "int32", (1, 1)),
        Field("rack_id", "string", (1, 1), nullable=(1, 1)),
        Field("subscribed_topic_names", Array("string"), (1, 1), nullable=(1, 1)),
    )
