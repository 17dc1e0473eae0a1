"""FetchResponse: API key 1, versions 4 to 18.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct, own


class EpochEndOffset(Struct):
    epoch: int = -1
    end_offset: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", (12, 18)),
        Field("end_offset", "int64", (12, 18)),
    )


class LeaderIdAndEpoch(Struct):
    leader_id: int = -1
    leader_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", (12, 18)),
        Field("leader_epoch", "int32", (12, 18)),
    )


class SnapshotId(Struct):
    end_offset: int = -1
    epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", (12, 18)),
        Field("epoch", "int32", (12, 18)),
    )


class AbortedTransaction(Struct):
    producer_id: int = 0
    first_offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", (4, 18)),
        Field("first_offset", "int64", (4, 18)),
    )


class PartitionData(Struct):
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = own(EpochEndOffset)
    current_leader: LeaderIdAndEpoch = own(LeaderIdAndEpoch)
    snapshot_id: SnapshotId = own(SnapshotId)
    aborted_transactions: tuple[AbortedTransaction, ...] | None = ()
    preferred_read_replica: int = -1
    records: bytes | memoryview | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (4, 18)),
        Field("error_code", "int16", (4, 18)),
        Field("high_watermark", "int64", (4, 18)),
        Field("last_stable_offset", "int64", (4, 18)),
        Field("log_start_offset", "int64", (5, 18)),
        Field("diverging_epoch", EpochEndOffset, (12, 18), tag=0, tagged=(12, 18)),
        Field("current_leader", LeaderIdAndEpoch, (12, 18), tag=1, tagged=(12, 18)),
        Field("snapshot_id", SnapshotId, (12, 18), tag=2, tagged=(12, 18)),
        Field("aborted_transactions", Array(AbortedTransaction), (4, 18), nullable=(4, 18)),
        Field("preferred_read_replica", "int32", (11, 18)),
        Field("records", "records", (4, 18), nullable=(4, 18)),
    )


class FetchableTopicResponse(Struct):
    topic: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (4, 12)),
        Field("topic_id", "uuid", (13, 18)),
        Field("partitions", Array(PartitionData), (4, 18)),
    )


class NodeEndpoint(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", (16, 18)),
        Field("host", "string", (16, 18)),
        Field("port", "int32", (16, 18)),
        Field("rack", "string", (16, 18), nullable=(16, 18)),
    )


class FetchResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: tuple[FetchableTopicResponse, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()

    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (4, 18)
    FLEXIBLE_FROM: ClassVar[int | None] = 12
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (4, 18)),
        Field("error_code", "int16", (7, 18)),
        Field("session_id", "int32", (7, 18)),
        Field("responses", Array(FetchableTopicResponse), (4, 18)),
        Field("node_endpoints", Array(NodeEndpoint), (16, 18), tag=0, tagged=(16, 18)),
    )
