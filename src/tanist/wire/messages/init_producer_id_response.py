"""InitProducerIdResponse: API key 22, versions 0 to 6.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Response


class InitProducerIdResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1

    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 6)),
        Field("error_code", "int16", (0, 6)),
        Field("producer_id", "int64", (0, 6)),
        Field("producer_epoch", "int16", (0, 6)),
        Field("ongoing_txn_producer_id", "int64", (6, 6)),
        Field("ongoing_txn_producer_epoch", "int16", (6, 6)),
    )
