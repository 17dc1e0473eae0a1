"""DescribeGroupsRequest: API key 15, versions 0 to 6.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request


class DescribeGroupsRequest(Request):
    groups: tuple[str, ...] = ()
    include_authorized_operations: bool = False

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int | None] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("groups", Array("string"), (0, 6)),
        Field("include_authorized_operations", "bool", (3, 6)),
    )
