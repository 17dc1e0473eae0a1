"""MetadataRequest: API key 3, versions 0 to 13.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class MetadataRequestTopic(Struct):
    topic_id: UUID = ZERO_UUID
    name: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (10, 13)),
        Field("name", "string", (0, 13), nullable=(10, 13)),
    )


class MetadataRequest(Request):
    topics: tuple[MetadataRequestTopic, ...] | None = ()
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False

    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE_FROM: ClassVar[int | None] = 9
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", Array(MetadataRequestTopic), (0, 13), nullable=(1, 13)),
        Field("allow_auto_topic_creation", "bool", (4, 13)),
        Field("include_cluster_authorized_operations", "bool", (8, 10)),
        Field("include_topic_authorized_operations", "bool", (8, 13)),
    )
