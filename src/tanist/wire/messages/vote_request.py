"""VoteRequest: API key 52, versions 0 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class PartitionData(Struct):
    partition_index: int = 0
    replica_epoch: int = 0
    replica_id: int = 0
    replica_directory_id: UUID = ZERO_UUID
    voter_directory_id: UUID = ZERO_UUID
    last_offset_epoch: int = 0
    last_offset: int = 0
    pre_vote: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 2)),
        Field("replica_epoch", "int32", (0, 2)),
        Field("replica_id", "int32", (0, 2)),
        Field("replica_directory_id", "uuid", (1, 2)),
        Field("voter_directory_id", "uuid", (1, 2)),
        Field("last_offset_epoch", "int32", (0, 2)),
        Field("last_offset", "int64", (0, 2)),
        Field("pre_vote", "bool", (2, 2)),
    )


class TopicData(Struct):
    topic_name: str = ""
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 2)),
        Field("partitions", Array(PartitionData), (0, 2)),
    )


class VoteRequest(Request):
    cluster_id: str | None = None
    voter_id: int = -1
    topics: tuple[TopicData, ...] = ()

    API_KEY: ClassVar[int] = 52
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 2), nullable=(0, 2)),
        Field("voter_id", "int32", (1, 2)),
        Field("topics", Array(TopicData), (0, 2)),
    )
