"""ListGroupsResponse: API key 16, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class ListedGroup(Struct):
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 5)),
        Field("protocol_type", "string", (0, 5)),
        Field("group_state", "string", (4, 5)),
        Field("group_type", "string", (5, 5)),
    )


class ListGroupsResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    groups: tuple[ListedGroup, ...] = ()

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 5)),
        Field("error_code", "int16", (0, 5)),
        Field("groups", Array(ListedGroup), (0, 5)),
    )
