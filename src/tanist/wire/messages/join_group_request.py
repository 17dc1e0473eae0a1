"""JoinGroupRequest: API key 11, versions 0 to 9.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class JoinGroupRequestProtocol(Struct):
    name: str = ""
    metadata: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 9)),
        Field("metadata", "bytes", (0, 9)),
    )


class JoinGroupRequest(Request):
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()
    reason: str | None = None

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 9)),
        Field("session_timeout_ms", "int32", (0, 9)),
        Field("rebalance_timeout_ms", "int32", (1, 9)),
        Field("member_id", "string", (0, 9)),
        Field("group_instance_id", "string", (5, 9), nullable=(5, 9)),
        Field("protocol_type", "string", (0, 9)),
        Field("protocols", Array(JoinGroupRequestProtocol), (0, 9)),
        Field("reason", "string", (8, 9), nullable=(8, 9)),
    )
