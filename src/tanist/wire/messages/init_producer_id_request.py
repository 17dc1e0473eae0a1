"""InitProducerIdRequest: API key 22, versions 0 to 6.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Request


class InitProducerIdRequest(Request):
    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False

    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (0, 6), nullable=(0, 6)),
        Field("transaction_timeout_ms", "int32", (0, 6)),
        Field("producer_id", "int64", (3, 6)),
        Field("producer_epoch", "int16", (3, 6)),
        Field("enable2_pc", "bool", (6, 6)),
        Field("keep_prepared_txn", "bool", (6, 6)),
    )
