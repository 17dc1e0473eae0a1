"""OffsetForLeaderEpochRequest: API key 23, versions 2 to 4.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class OffsetForLeaderPartition(Struct):
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (2, 4)),
        Field("current_leader_epoch", "int32", (2, 4)),
        Field("leader_epoch", "int32", (2, 4)),
    )


class OffsetForLeaderTopic(Struct):
    topic: str = ""
    partitions: tuple[OffsetForLeaderPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (2, 4)),
        Field("partitions", Array(OffsetForLeaderPartition), (2, 4)),
    )


class OffsetForLeaderEpochRequest(Request):
    replica_id: int = -2
    topics: tuple[OffsetForLeaderTopic, ...] = ()

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (2, 4)
    FLEXIBLE_FROM: ClassVar[int | None] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", (3, 4)),
        Field("topics", Array(OffsetForLeaderTopic), (2, 4)),
    )
