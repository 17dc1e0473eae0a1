"""FetchSnapshotResponse: API key 59, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct, own


class SnapshotId(Struct):
    end_offset: int = 0
    epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", (0, 1)),
        Field("epoch", "int32", (0, 1)),
    )


class LeaderIdAndEpoch(Struct):
    leader_id: int = 0
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", (0, 1)),
        Field("leader_epoch", "int32", (0, 1)),
    )


class PartitionSnapshot(Struct):
    index: int = 0
    error_code: int = 0
    snapshot_id: SnapshotId = own(SnapshotId)
    current_leader: LeaderIdAndEpoch = own(LeaderIdAndEpoch)
    size: int = 0
    position: int = 0
    unaligned_records: bytes | memoryview | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("snapshot_id", SnapshotId, (0, 1)),
        Field("current_leader", LeaderIdAndEpoch, (0, 1), tag=0, tagged=(0, 1)),
        Field("size", "int64", (0, 1)),
        Field("position", "int64", (0, 1)),
        Field("unaligned_records", "records", (0, 1)),
    )


class TopicSnapshot(Struct):
    name: str = ""
    partitions: tuple[PartitionSnapshot, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("partitions", Array(PartitionSnapshot), (0, 1)),
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


class FetchSnapshotResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: tuple[TopicSnapshot, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()

    API_KEY: ClassVar[int] = 59
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("topics", Array(TopicSnapshot), (0, 1)),
        Field("node_endpoints", Array(NodeEndpoint), (1, 1), tag=0, tagged=(1, 1)),
    )
