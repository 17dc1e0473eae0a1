"""DeleteAclsResponse: API key 31, versions 1 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class DeleteAclsMatchingAcl(Struct):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 3)),
        Field("error_message", "string", (1, 3), nullable=(1, 3)),
        Field("resource_type", "int8", (1, 3)),
        Field("resource_name", "string", (1, 3)),
        Field("pattern_type", "int8", (1, 3)),
        Field("principal", "string", (1, 3)),
        Field("host", "string", (1, 3)),
        Field("operation", "int8", (1, 3)),
        Field("permission_type", "int8", (1, 3)),
    )


class DeleteAclsFilterResult(Struct):
    error_code: int = 0
    error_message: str | None = ""
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 3)),
        Field("error_message", "string", (1, 3), nullable=(1, 3)),
        Field("matching_acls", Array(DeleteAclsMatchingAcl), (1, 3)),
    )


class DeleteAclsResponse(Response):
    throttle_time_ms: int = 0
    filter_results: tuple[DeleteAclsFilterResult, ...] = ()

    API_KEY: ClassVar[int] = 31
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 3)),
        Field("filter_results", Array(DeleteAclsFilterResult), (1, 3)),
    )
