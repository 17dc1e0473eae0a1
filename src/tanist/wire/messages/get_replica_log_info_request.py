"""GetReplicaLogInfoRequest: API key 32093, version 0. By hand: KIP-966's request, which Apache has not shipped."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class TopicPartitions(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 0)),
        Field("partitions", Array("int32"), (0, 0)),
    )


class GetReplicaLogInfoRequest(Request):
    """What the controller asks a replica before it elects a leader uncleanly."""

    broker_id: int = 0
    topic_partitions: tuple[TopicPartitions, ...] | None = ()

    API_KEY: ClassVar[int] = 32_093
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", (0, 0)),
        Field("topic_partitions", Array(TopicPartitions), (0, 0), nullable=(0, 0)),
    )
