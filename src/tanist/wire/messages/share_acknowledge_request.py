"""ShareAcknowledgeRequest: API key 79, versions 1 to 2.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct


class AcknowledgementBatch(Struct):
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", (1, 2)),
        Field("last_offset", "int64", (1, 2)),
        Field("acknowledge_types", Array("int8"), (1, 2)),
    )


class AcknowledgePartition(Struct):
    partition_index: int = 0
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("acknowledgement_batches", Array(AcknowledgementBatch), (1, 2)),
    )


class AcknowledgeTopic(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[AcknowledgePartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 2)),
        Field("partitions", Array(AcknowledgePartition), (1, 2)),
    )


class ShareAcknowledgeRequest(Request):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: tuple[AcknowledgeTopic, ...] = ()

    API_KEY: ClassVar[int] = 79
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (1, 2), nullable=(1, 2)),
        Field("member_id", "string", (1, 2), nullable=(1, 2)),
        Field("share_session_epoch", "int32", (1, 2)),
        Field("is_renew_ack", "bool", (2, 2)),
        Field("topics", Array(AcknowledgeTopic), (1, 2)),
    )
