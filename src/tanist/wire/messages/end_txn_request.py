"""EndTxnRequest: API key 26, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Request


class EndTxnRequest(Request):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (0, 5)),
        Field("producer_id", "int64", (0, 5)),
        Field("producer_epoch", "int16", (0, 5)),
        Field("committed", "bool", (0, 5)),
    )
