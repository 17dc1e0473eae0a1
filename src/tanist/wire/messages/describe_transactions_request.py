"""DescribeTransactionsRequest: API key 65, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request


class DescribeTransactionsRequest(Request):
    transactional_ids: tuple[str, ...] = ()

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("transactional_ids", Array("string"), (0, 0)),)
