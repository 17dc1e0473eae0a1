"""ShareAcknowledgeResponse: API key 79, versions 1 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct, own


class LeaderIdAndEpoch(Struct):
    leader_id: int = 0
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", (1, 2)),
        Field("leader_epoch", "int32", (1, 2)),
    )


class PartitionData(Struct):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = own(LeaderIdAndEpoch)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("error_code", "int16", (1, 2)),
        Field("error_message", "string", (1, 2), nullable=(1, 2)),
        Field("current_leader", LeaderIdAndEpoch, (1, 2)),
    )


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 2)),
        Field("partitions", Array(PartitionData), (1, 2)),
    )


class NodeEndpoint(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (1, 2)),
        Field("host", "string", (1, 2)),
        Field("port", "int32", (1, 2)),
        Field("rack", "string", (1, 2), nullable=(1, 2)),
    )


class ShareAcknowledgeResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: tuple[ShareAcknowledgeTopicResponse, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()

    API_KEY: ClassVar[int] = 79
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 2)),
        Field("error_code", "int16", (1, 2)),
        Field("error_message", "string", (1, 2), nullable=(1, 2)),
        Field("acquisition_lock_timeout_ms", "int32", (2, 2)),
        Field("responses", Array(ShareAcknowledgeTopicResponse), (1, 2)),
        Field("node_endpoints", Array(NodeEndpoint), (1, 2)),
    )
