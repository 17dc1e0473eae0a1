"""OffsetFetchRequest: API key 9, versions 1 to 10.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class OffsetFetchRequestTopic(Struct):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 7)),
        Field("partition_indexes", Array("int32"), (1, 7)),
    )


class OffsetFetchRequestTopics(Struct):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partition_indexes: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (8, 9)),
        Field("topic_id", "uuid", (10, 10)),
        Field("partition_indexes", Array("int32"), (8, 10)),
    )


class OffsetFetchRequestGroup(Struct):
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: tuple[OffsetFetchRequestTopics, ...] | None = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (8, 10)),
        Field("member_id", "string", (9, 10), nullable=(9, 10)),
        Field("member_epoch", "int32", (9, 10)),
        Field("topics", Array(OffsetFetchRequestTopics), (8, 10), nullable=(8, 10)),
    )


class OffsetFetchRequest(Request):
    group_id: str = ""
    topics: tuple[OffsetFetchRequestTopic, ...] | None = ()
    groups: tuple[OffsetFetchRequestGroup, ...] = ()
    require_stable: bool = False

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[tuple[int, int]] = (1, 10)
    FLEXIBLE_FROM: ClassVar[int | None] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (1, 7)),
        Field("topics", Array(OffsetFetchRequestTopic), (1, 7), nullable=(2, 7)),
        Field("groups", Array(OffsetFetchRequestGroup), (8, 10)),
        Field("require_stable", "bool", (7, 10)),
    )
