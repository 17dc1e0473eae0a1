"""GetReplicaLogInfoResponse: API key 32093, version 0. By hand: KIP-966's response, which Apache has not shipped.

`leader_epochs`, tag 0 of a partition, is ours: who knows the KIP's response only, skips it.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class LeaderEpochStart(Struct):
    leader_epoch: int = 0
    start_offset: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_epoch", "int32", (0, 0)),
        Field("start_offset", "int64", (0, 0)),
    )


class PartitionLogInfo(Struct):
    partition: int = 0
    last_written_leader_epoch: int = 0
    current_leader_epoch: int = 0
    log_end_offset: int = 0
    error_code: int = 0
    error_message: str | None = None
    leader_epochs: tuple[LeaderEpochStart, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (0, 0)),
        Field("last_written_leader_epoch", "int32", (0, 0)),
        Field("current_leader_epoch", "int32", (0, 0)),
        Field("log_end_offset", "int64", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
        Field("leader_epochs", Array(LeaderEpochStart), (0, 0), tag=0, tagged=(0, 0)),
    )


class TopicPartitionLogInfo(Struct):
    topic_id: UUID = ZERO_UUID
    partition_log_info: tuple[PartitionLogInfo, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partition_log_info", Array(PartitionLogInfo), (0, 0)),
    )


class GetReplicaLogInfoResponse(Response):
    """How far the replica's logs go, with the broker's epoch so that a reboot since then is noticed."""

    broker_epoch: int = 0
    topic_partition_log_info_list: tuple[TopicPartitionLogInfo, ...] = ()

    API_KEY: ClassVar[int] = 32_093
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_epoch", "int64", (0, 0)),
        Field("topic_partition_log_info_list", Array(TopicPartitionLogInfo), (0, 0)),
    )
