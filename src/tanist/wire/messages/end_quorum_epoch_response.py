"""EndQuorumEpochResponse: API key 54, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class PartitionData(Struct):
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("leader_id", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
    )


class TopicData(Struct):
    topic_name: str = ""
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", (0, 1)),
        Field("partitions", Array(PartitionData), (0, 1)),
    )


class NodeEndpoint(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (1, 1)),
        Field("host", "string", (1, 1)),
        Field("port", "uint16", (1, 1)),
    )


class EndQuorumEpochResponse(Response):
    error_code: int = 0
    topics: tuple[TopicData, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()

    API_KEY: ClassVar[int] = 54
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (0, 1)),
        Field("topics", Array(TopicData), (0, 1)),
        Field("node_endpoints", Array(NodeEndpoint), (1, 1), tag=0, tagged=(1, 1)),
    )
