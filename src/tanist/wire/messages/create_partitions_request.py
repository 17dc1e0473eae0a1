"""CreatePartitionsRequest: API key 37, versions 0 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class CreatePartitionsAssignment(Struct):
    broker_ids: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("broker_ids", Array("int32"), (0, 3)),)


class CreatePartitionsTopic(Struct):
    name: str = ""
    count: int = 0
    assignments: tuple[CreatePartitionsAssignment, ...] | None = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 3)),
        Field("count", "int32", (0, 3)),
        Field("assignments", Array(CreatePartitionsAssignment), (0, 3), nullable=(0, 3)),
    )


class CreatePartitionsRequest(Request):
    topics: tuple[CreatePartitionsTopic, ...] = ()
    timeout_ms: int = 0
    validate_only: bool = False

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", Array(CreatePartitionsTopic), (0, 3)),
        Field("timeout_ms", "int32", (0, 3)),
        Field("validate_only", "bool", (0, 3)),
    )
