"""StreamsGroupDescribeRequest: API key 89, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request


class StreamsGroupDescribeRequest(Request):
    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False
    include_topology_description: bool = False

    API_KEY: ClassVar[int] = 89
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_ids", Array("string"), (0, 1)),
        Field("include_authorized_operations", "bool", (0, 1)),
        Field("include_topology_description", "bool", (1, 1)),
    )
