"""DeleteGroupsRequest: API key 42, versions 0 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request


class DeleteGroupsRequest(Request):
    groups_names: tuple[str, ...] = ()

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("groups_names", Array("string"), (0, 3)),)
