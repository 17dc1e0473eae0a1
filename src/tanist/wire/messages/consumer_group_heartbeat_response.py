"""ConsumerGroupHeartbeatResponse: API key 68, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class TopicPartitions(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", Array("int32"), (0, 1)),
    )


class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_partitions", Array(TopicPartitions), (0, 1)),)


class ConsumerGroupHeartbeatResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None

    API_KEY: ClassVar[int] = 68
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("member_id", "string", (0, 1), nullable=(0, 1)),
        Field("member_epoch", "int32", (0, 1)),
        Field("heartbeat_interval_ms", "int32", (0, 1)),
        Field("assignment", Assignment, (0, 1), nullable=(0, 1)),
    )
