"""ConsumerGroupHeartbeatRequest: API key 68, versions 0 to 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class TopicPartitions(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (0, 1)),
        Field("partitions", Array("int32"), (0, 1)),
    )


class ConsumerGroupHeartbeatRequest(Request):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None

    API_KEY: ClassVar[int] = 68
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (0, 1)),
        Field("member_id", "string", (0, 1)),
        Field("member_epoch", "int32", (0, 1)),
        Field("instance_id", "string", (0, 1), nullable=(0, 1)),
        Field("rack_id", "string", (0, 1), nullable=(0, 1)),
        Field("rebalance_timeout_ms", "int32", (0, 1)),
        Field("subscribed_topic_names", Array("string"), (0, 1), nullable=(0, 1)),
        Field("subscribed_topic_regex", "string", (1, 1), nullable=(1, 1)),
        Field("server_assignor", "string", (0, 1), nullable=(0, 1)),
        Field("topic_partitions", Array(TopicPartitions), (0, 1), nullable=(0, 1)),
    )
