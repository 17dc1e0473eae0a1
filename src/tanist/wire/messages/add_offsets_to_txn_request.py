"""AddOffsetsToTxnRequest: API key 25, versions 0 to 4.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Request


class AddOffsetsToTxnRequest(Request):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (0, 4)),
        Field("producer_id", "int64", (0, 4)),
        Field("producer_epoch", "int16", (0, 4)),
        Field("group_id", "string", (0, 4)),
    )
