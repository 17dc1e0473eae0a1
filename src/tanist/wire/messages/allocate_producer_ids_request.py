"""AllocateProducerIdsRequest: API key 67, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Request


class AllocateProducerIdsRequest(Request):
    broker_id: int = 0
    broker_epoch: int = -1

    API_KEY: ClassVar[int] = 67
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 0)),
        Field("broker_epoch", "int64", (0, 0)),
    )
