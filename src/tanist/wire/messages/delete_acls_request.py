"""DeleteAclsRequest: API key 31, versions 1 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class DeleteAclsFilter(Struct):
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type_filter", "int8", (1, 3)),
        Field("resource_name_filter", "string", (1, 3), nullable=(1, 3)),
        Field("pattern_type_filter", "int8", (1, 3)),
        Field("principal_filter", "string", (1, 3), nullable=(1, 3)),
        Field("host_filter", "string", (1, 3), nullable=(1, 3)),
        Field("operation", "int8", (1, 3)),
        Field("permission_type", "int8", (1, 3)),
    )


class DeleteAclsRequest(Request):
    filters: tuple[DeleteAclsFilter, ...] = ()

    API_KEY: ClassVar[int] = 31
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("filters", Array(DeleteAclsFilter), (1, 3)),)
