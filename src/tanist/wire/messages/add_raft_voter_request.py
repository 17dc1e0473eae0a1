"""AddRaftVoterRequest: API key 80, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class Listener(Struct):
    name: str = ""
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("host", "string", (0, 1)),
        Field("port", "uint16", (0, 1)),
    )


class AddRaftVoterRequest(Request):
    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: UUID = ZERO_UUID
    listeners: tuple[Listener, ...] = ()
    ack_when_committed: bool = True

    API_KEY: ClassVar[int] = 80
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 1), nullable=(0, 1)),
        Field("timeout_ms", "int32", (0, 1)),
        Field("voter_id", "int32", (0, 1)),
        Field("voter_directory_id", "uuid", (0, 1)),
        Field("listeners", Array(Listener), (0, 1)),
        Field("ack_when_committed", "bool", (1, 1)),
    )
