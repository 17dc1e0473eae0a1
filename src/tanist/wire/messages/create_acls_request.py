"""CreateAclsRequest: API key 30, versions 1 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class AclCreation(Struct):
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", (1, 3)),
        Field("resource_name", "string", (1, 3)),
        Field("resource_pattern_type", "int8", (1, 3)),
        Field("principal", "string", (1, 3)),
        Field("host", "string", (1, 3)),
        Field("operation", "int8", (1, 3)),
        Field("permission_type", "int8", (1, 3)),
    )


class CreateAclsRequest(Request):
    creations: tuple[AclCreation, ...] = ()

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("creations", Array(AclCreation), (1, 3)),)
