"""ShareGroupDescribeRequest: API key 77, version 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request


class ShareGroupDescribeRequest(Request):
    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False

    API_KEY: ClassVar[int] = 77
    VERSIONS: ClassVar[tuple[int, int]] = (1, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_ids", Array("string"), (1, 1)),
        Field("include_authorized_operations", "bool", (1, 1)),
    )
