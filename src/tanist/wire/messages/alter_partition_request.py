"""AlterPartitionRequest: API key 56, versions 2 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class BrokerState(Struct):
    broker_id: int = 0
    broker_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (3, 3)),
        Field("broker_epoch", "int64", (3, 3)),
    )


class PartitionData(Struct):
    partition_index: int = 0
    leader_epoch: int = 0
    new_isr: tuple[int, ...] = ()
    new_isr_with_epochs: tuple[BrokerState, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (2, 3)),
        Field("leader_epoch", "int32", (2, 3)),
        Field("new_isr", Array("int32"), (2, 2)),
        Field("new_isr_with_epochs", Array(BrokerState), (3, 3)),
        Field("leader_recovery_state", "int8", (2, 3)),
        Field("partition_epoch", "int32", (2, 3)),
    )


class TopicData(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (2, 3)),
        Field("partitions", Array(PartitionData), (2, 3)),
    )


class AlterPartitionRequest(Request):
    broker_id: int = 0
    broker_epoch: int = -1
    topics: tuple[TopicData, ...] = ()

    API_KEY: ClassVar[int] = 56
    VERSIONS: ClassVar[tuple[int, int]] = (2, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (2, 3)),
        Field("broker_epoch", "int64", (2, 3)),
        Field("topics", Array(TopicData), (2, 3)),
    )
