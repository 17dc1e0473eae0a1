"""SyncGroupRequest: API key 14, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class SyncGroupRequestAssignment(Struct):
    member_id: str = ""
    assignment: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 5)),
        Field("assignment", "bytes", (0, 5)),
    )


class SyncGroupRequest(Request):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 5)),
        Field("generation_id", "int32", (0, 5)),
        Field("member_id", "string", (0, 5)),
        Field("group_instance_id", "string", (3, 5), nullable=(3, 5)),
        Field("protocol_type", "string", (5, 5), nullable=(5, 5)),
        Field("protocol_name", "string", (5, 5), nullable=(5, 5)),
        Field("assignments", Array(SyncGroupRequestAssignment), (0, 5)),
    )
