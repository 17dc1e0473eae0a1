"""ListGroupsRequest: API key 16, versions 0 to 5.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request


class ListGroupsRequest(Request):
    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("states_filter", Array("string"), (4, 5)),
        Field("types_filter", Array("string"), (5, 5)),
    )
