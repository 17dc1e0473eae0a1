"""LeaveGroupRequest: API key 13, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class MemberIdentity(Struct):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (3, 5)),
        Field("group_instance_id", "string", (3, 5), nullable=(3, 5)),
        Field("reason", "string", (5, 5), nullable=(5, 5)),
    )


class LeaveGroupRequest(Request):
    group_id: str = ""
    member_id: str = ""
    members: tuple[MemberIdentity, ...] = ()

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 5)),
        Field("member_id", "string", (0, 2)),
        Field("members", Array(MemberIdentity), (3, 5)),
    )
