"""JoinGroupResponse: API key 11, versions 0 to 9.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class JoinGroupResponseMember(Struct):
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 9)),
        Field("group_instance_id", "string", (5, 9), nullable=(5, 9)),
        Field("metadata", "bytes", (0, 9)),
    )


class JoinGroupResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[JoinGroupResponseMember, ...] = ()

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (2, 9)),
        Field("error_code", "int16", (0, 9)),
        Field("generation_id", "int32", (0, 9)),
        Field("protocol_type", "string", (7, 9), nullable=(7, 9)),
        Field("protocol_name", "string", (0, 9), nullable=(7, 9)),
        Field("leader", "string", (0, 9)),
        Field("skip_assignment", "bool", (9, 9)),
        Field("member_id", "string", (0, 9)),
        Field("members", Array(JoinGroupResponseMember), (0, 9)),
    )
