"""UpdateRaftVoterResponse: API key 82, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Response, Struct, own


class CurrentLeader(Struct):
    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", (0, 0)),
        Field("leader_epoch", "int32", (0, 0)),
        Field("host", "string", (0, 0)),
        Field("port", "int32", (0, 0)),
    )


class UpdateRaftVoterResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    current_leader: CurrentLeader = own(CurrentLeader)

    API_KEY: ClassVar[int] = 82
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("current_leader", CurrentLeader, (0, 0), tag=0, tagged=(0, 0)),
    )
