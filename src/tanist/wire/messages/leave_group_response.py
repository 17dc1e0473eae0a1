"""LeaveGroupResponse: API key 13, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class MemberResponse(Struct):
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (3, 5)),
        Field("group_instance_id", "string", (3, 5), nullable=(3, 5)),
        Field("error_code", "int16", (3, 5)),
    )


class LeaveGroupResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    members: tuple[MemberResponse, ...] = ()

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 5)),
        Field("error_code", "int16", (0, 5)),
        Field("members", Array(MemberResponse), (3, 5)),
    )
