"""DescribeGroupsResponse: API key 15, versions 0 to 6.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class DescribedGroupMember(Struct):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 6)),
        Field("group_instance_id", "string", (4, 6), nullable=(4, 6)),
        Field("client_id", "string", (0, 6)),
        Field("client_host", "string", (0, 6)),
        Field("member_metadata", "bytes", (0, 6)),
        Field("member_assignment", "bytes", (0, 6)),
    )


class DescribedGroup(Struct):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 6)),
        Field("error_message", "string", (6, 6), nullable=(6, 6)),
        Field("group_id", "string", (0, 6)),
        Field("group_state", "string", (0, 6)),
        Field("protocol_type", "string", (0, 6)),
        Field("protocol_data", "string", (0, 6)),
        Field("members", Array(DescribedGroupMember), (0, 6)),
        Field("authorized_operations", "int32", (3, 6)),
    )


class DescribeGroupsResponse(Response):
    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int | None] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 6)),
        Field("groups", Array(DescribedGroup), (0, 6)),
    )
