"""FetchSnapshotRequest: API key 59, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct, own


class SnapshotId(Struct):
    end_offset: int = 0
    epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", (0, 1)),
        Field("epoch", "int32", (0, 1)),
    )


class PartitionSnapshot(Struct):
    partition: int = 0
    current_leader_epoch: int = 0
    snapshot_id: SnapshotId = own(SnapshotId)
    position: int = 0
    replica_directory_id: UUID = ZERO_UUID

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 1)),
        Field("current_leader_epoch", "int32", (0, 1)),
        Field("snapshot_id", SnapshotId, (0, 1)),
        Field("position", "int64", (0, 1)),
        Field("replica_directory_id", "uuid", (1, 1), tag=0, tagged=(1, 1)),
    )


class TopicSnapshot(Struct):
    name: str = ""
    partitions: tuple[PartitionSnapshot, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 1)),
        Field("partitions", Array(PartitionSnapshot), (0, 1)),
    )


class FetchSnapshotRequest(Request):
    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = 2147483647
    topics: tuple[TopicSnapshot, ...] = ()

    API_KEY: ClassVar[int] = 59
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (0, 1), nullable=(0, 1), tag=0, tagged=(0, 1)),
        Field("replica_id", "int32", (0, 1)),
        Field("max_bytes", "int32", (0, 1)),
        Field("topics", Array(TopicSnapshot), (0, 1)),
    )
