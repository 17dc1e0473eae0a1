"""EndTxnMarker: version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Field, Message


class EndTxnMarker(Message):
    coordinator_epoch: int = 0

    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("coordinator_epoch", "int32", (0, 0)),)
