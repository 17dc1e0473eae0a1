"""BrokerHeartbeatRequest: API key 63, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import Array, Field, Request


class BrokerHeartbeatRequest(Request):
    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None

    API_KEY: ClassVar[int] = 63
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 2)),
        Field("broker_epoch", "int64", (0, 2)),
        Field("current_metadata_offset", "int64", (0, 2)),
        Field("want_fence", "bool", (0, 2)),
        Field("want_shut_down", "bool", (0, 2)),
        Field("offline_log_dirs", Array("uuid"), (1, 2), tag=0, tagged=(1, 2)),
        Field("cordoned_log_dirs", Array("uuid"), (2, 2), nullable=(2, 2), tag=1, tagged=(2, 2)),
    )
