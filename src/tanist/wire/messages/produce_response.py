"""ProduceResponse: API key 0, versions 3 to 13.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct, own


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = 0
    batch_index_error_message: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("batch_index", "int32", (8, 13)),
        Field("batch_index_error_message", "string", (8, 13), nullable=(8, 13)),
    )


class LeaderIdAndEpoch(Struct):
    leader_id: int = -1
    leader_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", (10, 13)),
        Field("leader_epoch", "int32", (10, 13)),
    )


class PartitionProduceResponse(Struct):
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = own(LeaderIdAndEpoch)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", (3, 13)),
        Field("error_code", "int16", (3, 13)),
        Field("base_offset", "int64", (3, 13)),
        Field("log_append_time_ms", "int64", (3, 13)),
        Field("log_start_offset", "int64", (5, 13)),
        Field("record_errors", Array(BatchIndexAndErrorMessage), (8, 13)),
        Field("error_message", "string", (8, 13), nullable=(8, 13)),
        Field("current_leader", LeaderIdAndEpoch, (10, 13), tag=0, tagged=(10, 13)),
    )


class TopicProduceResponse(Struct):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partition_responses: tuple[PartitionProduceResponse, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (3, 12)),
        Field("topic_id", "uuid", (13, 13)),
        Field("partition_responses", Array(PartitionProduceResponse), (3, 13)),
    )


class NodeEndpoint(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (10, 13)),
        Field("host", "string", (10, 13)),
        Field("port", "int32", (10, 13)),
        Field("rack", "string", (10, 13), nullable=(10, 13)),
    )


class ProduceResponse(Response):
    responses: tuple[TopicProduceResponse, ...] = ()
    throttle_time_ms: int = 0
    node_endpoints: tuple[NodeEndpoint, ...] = ()

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (3, 13)
    FLEXIBLE_FROM: ClassVar[int | None] = 9
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("responses", Array(TopicProduceResponse), (3, 13)),
        Field("throttle_time_ms", "int32", (3, 13)),
        Field("node_endpoints", Array(NodeEndpoint), (10, 13), tag=0, tagged=(10, 13)),
    )
