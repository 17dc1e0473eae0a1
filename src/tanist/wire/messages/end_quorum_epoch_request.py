"""EndQuorumEpochRequest: API key 54, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class ReplicaInfo(Struct):
    candidate_id: int = 0
    candidate_directory_id: UUID = ZERO_UUID

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("candidate_id", "int32", (1, 1)),
        Field("candidate_directory_id", "uuid", (1, 1)),
    )


class PartitionData(Struct):
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    preferred_successors: tuple[int, ...] = ()
    preferred_candidates: tuple[ReplicaInfo, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 1)),
        Field("leader_id", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
        Field("preferred_successors", Array("int32"), (0, 0)),
        Field("preferred_candidates", Array(ReplicaInfo), (1, 1)),
    )


class TopicData(Struct):
    topic_name: str = ""
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 1)),
        Field("partitions", Array(PartitionData), (0, 1)),
    )


class LeaderEndpoint(Struct):
    name: str = ""
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (1, 1)),
        Field("host", "string", (1, 1)),
        Field("port", "uint16", (1, 1)),
    )


class EndQuorumEpochRequest(Request):
    cluster_id: str | None = None
    topics: tuple[TopicData, ...] = ()
    leader_endpoints: tuple[LeaderEndpoint, ...] = ()

    API_KEY: ClassVar[int] = 54
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 1), nullable=(0, 1)),
        Field("topics", Array(TopicData), (0, 1)),
        Field("leader_endpoints", Array(LeaderEndpoint), (1, 1)),
    )
