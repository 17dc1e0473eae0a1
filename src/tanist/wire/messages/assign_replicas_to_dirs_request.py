"""AssignReplicasToDirsRequest: API key 73, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class PartitionData(Struct):
    partition_index: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("partition_index", "int32", (0, 0)),)


class TopicData(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", Array(PartitionData), (0, 0)),
    )


class DirectoryData(Struct):
    id: UUID = ZERO_UUID
    topics: tuple[TopicData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "uuid", (0, 0)),
        Field("topics", Array(TopicData), (0, 0)),
    )


class AssignReplicasToDirsRequest(Request):
    broker_id: int = 0
    broker_epoch: int = -1
    directories: tuple[DirectoryData, ...] = ()

    API_KEY: ClassVar[int] = 73
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 0)),
        Field("broker_epoch", "int64", (0, 0)),
        Field("directories", Array(DirectoryData), (0, 0)),
    )
