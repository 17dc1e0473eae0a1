"""The records of `__share_group_state`: the delivery state of a share partition (KIP-932).

A snapshot has all of it; updates have what has changed since the snapshot of their epoch. The formats are Apache Kafka
4.3's.
"""

from __future__ import annotations

from typing import ClassVar, Final
from uuid import UUID

from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue, RecordKinds
from tanist.wire.schema import ZERO_UUID, Array, Field, Struct

_SHARE_PARTITION: tuple[Field, ...] = (
    Field("group_id", "string", (0, 0)),
    Field("topic_id", "uuid", (0, 0)),
    Field("partition", "int32", (0, 0)),
)


class StoredBatch(Struct):
    """Records in one state, delivered equally often."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", (0, 0)),
        Field("last_offset", "int64", (0, 0)),
        Field("delivery_state", "int8", (0, 0)),
        Field("delivery_count", "int16", (0, 0)),
    )


class ShareSnapshotKey(CoordinatorKey):
    group_id: str = ""
    topic_id: UUID = ZERO_UUID
    partition: int = 0

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (0,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _SHARE_PARTITION


class ShareSnapshotValue(CoordinatorValue):
    """The whole state of a share partition."""

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    create_timestamp: int = 0
    write_timestamp: int = 0
    state_batches: tuple[StoredBatch, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("snapshot_epoch", "int32", (0, 0)),
        Field("state_epoch", "int32", (0, 0)),
        Field("leader_epoch", "int32", (0, 0)),
        Field("start_offset", "int64", (0, 0)),
        Field("delivery_complete_count", "int32", (0, 0), tag=0, tagged=(0, 0)),
        Field("create_timestamp", "int64", (0, 0)),
        Field("write_timestamp", "int64", (0, 0)),
        Field("state_batches", Array(StoredBatch), (0, 0)),
    )


class ShareUpdateKey(CoordinatorKey):
    group_id: str = ""
    topic_id: UUID = ZERO_UUID
    partition: int = 0

    RECORD_KINDS: ClassVar[tuple[int, ...]] = (1,)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = _SHARE_PARTITION


class ShareUpdateValue(CoordinatorValue):
    """What has changed since the last snapshot or update."""

    snapshot_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: tuple[StoredBatch, ...] = ()

    WRITTEN: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("snapshot_epoch", "int32", (0, 0)),
        Field("leader_epoch", "int32", (0, 0)),
        Field("start_offset", "int64", (0, 0)),
        Field("delivery_complete_count", "int32", (0, 0), tag=0, tagged=(0, 0)),
        Field("state_batches", Array(StoredBatch), (0, 0)),
    )


decode_share_state_record: Final = RecordKinds(
    "share state", ((ShareSnapshotKey, ShareSnapshotValue), (ShareUpdateKey, ShareUpdateValue))
).decode
"""A record of `__share_group_state`: its key and value, None for a kind that is not known."""
