"""DescribeConfigsRequest: API key 32, versions 1 to 4.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class DescribeConfigsResource(Struct):
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: tuple[str, ...] | None = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resource_type", "int8", (1, 4)),
        Field("resource_name", "string", (1, 4)),
        Field("configuration_keys", Array("string"), (1, 4), nullable=(1, 4)),
    )


class DescribeConfigsRequest(Request):
    resources: tuple[DescribeConfigsResource, ...] = ()
    include_synonyms: bool = False
    include_documentation: bool = False

    API_KEY: ClassVar[int] = 32
    VERSIONS: ClassVar[tuple[int, int]] = (1, 4)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("resources", Array(DescribeConfigsResource), (1, 4)),
        Field("include_synonyms", "bool", (1, 4)),
        Field("include_documentation", "bool", (3, 4)),
    )
