"""ShareGroupHeartbeatResponse: API key 76, version 1.

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
        Field("topic_id", "uuid", (1, 1)),
        Field("partitions", Array("int32"), (1, 1)),
    )


class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_partitions", Array(TopicPartitions), (1, 1)),)


class ShareGroupHeartbeatResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None

    API_KEY: ClassVar[int] = 76
    VERSIONS: ClassVar[tuple[int, int]] = (1, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 1)),
        Field("error_code", "int16", (1, 1)),
        Field("error_message", "string", (1, 1), nullable=(1, 1)),
        Field("member_id", "string", (1, 1), nullable=(1, 1)),
        Field("member_epoch", "int32", (1, 1)),
        Field("heartbeat_interval_ms", "int32", (1, 1)),
        Field("assignment", Assignment, (1, 1), nullable=(1, 1)),
    )
