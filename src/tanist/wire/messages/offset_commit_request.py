"""OffsetCommitRequest: API key 8, versions 2 to 10.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class OffsetCommitRequestPartition(Struct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (2, 10)),
        Field("committed_offset", "int64", (2, 10)),
        Field("committed_leader_epoch", "int32", (6, 10)),
        Field("committed_metadata", "string", (2, 10), nullable=(2, 10)),
    )


class OffsetCommitRequestTopic(Struct):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[OffsetCommitRequestPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 9)),
        Field("topic_id", "uuid", (10, 10)),
        Field("partitions", Array(OffsetCommitRequestPartition), (2, 10)),
    )


class OffsetCommitRequest(Request):
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    retention_time_ms: int = -1
    group_instance_id: str | None = None
    topics: tuple[OffsetCommitRequestTopic, ...] = ()

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (2, 10)
    FLEXIBLE_FROM: ClassVar[int | None] = 8
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (2, 10)),
        Field("generation_id_or_member_epoch", "int32", (2, 10)),
        Field("member_id", "string", (2, 10)),
        Field("retention_time_ms", "int64", (2, 4)),
        Field("group_instance_id", "string", (7, 10), nullable=(7, 10)),
        Field("topics", Array(OffsetCommitRequestTopic), (2, 10)),
    )
