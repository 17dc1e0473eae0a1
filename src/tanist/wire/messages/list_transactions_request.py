"""ListTransactionsRequest: API key 66, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request


class ListTransactionsRequest(Request):
    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("state_filters", Array("string"), (0, 2)),
        Field("producer_id_filters", Array("int64"), (0, 2)),
        Field("duration_filter", "int64", (1, 2)),
        Field("transactional_id_pattern", "string", (2, 2), nullable=(2, 2)),
    )
