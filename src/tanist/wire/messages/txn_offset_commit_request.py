"""TxnOffsetCommitRequest: API key 28, versions 0 to 6.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 6)),
        Field("committed_offset", "int64", (0, 6)),
        Field("committed_leader_epoch", "int32", (2, 6)),
        Field("committed_metadata", "string", (0, 6), nullable=(0, 6)),
    )


class TxnOffsetCommitRequestTopic(Struct):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 5)),
        Field("topic_id", "uuid", (6, 6)),
        Field("partitions", Array(TxnOffsetCommitRequestPartition), (0, 6)),
    )


class TxnOffsetCommitRequest(Request):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = ()

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int | None] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", (0, 6)),
        Field("group_id", "string", (0, 6)),
        Field("producer_id", "int64", (0, 6)),
        Field("producer_epoch", "int16", (0, 6)),
        Field("generation_id", "int32", (3, 6)),
        Field("member_id", "string", (3, 6)),
        Field("group_instance_id", "string", (3, 6), nullable=(3, 6)),
        Field("topics", Array(TxnOffsetCommitRequestTopic), (0, 6)),
    )
