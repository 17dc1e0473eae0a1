"""ShareFetchRequest: API key 78, versions 1 to 2.

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


class FetchPartition(Struct):
    partition_index: int = 0
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (1, 2)),
        Field("acknowledgement_batches", Array(AcknowledgementBatch), (1, 2)),
    )


class FetchTopic(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[FetchPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 2)),
        Field("partitions", Array(FetchPartition), (1, 2)),
    )


class ForgottenTopic(Struct):
    topic_id: UUID = ZERO_UUID
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 2)),
        Field("partitions", Array("int32"), (1, 2)),
    )


class ShareFetchRequest(Request):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: tuple[FetchTopic, ...] = ()
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()

    API_KEY: ClassVar[int] = 78
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", (1, 2), nullable=(1, 2)),
        Field("member_id", "string", (1, 2), nullable=(1, 2)),
        Field("share_session_epoch", "int32", (1, 2)),
        Field("max_wait_ms", "int32", (1, 2)),
        Field("min_bytes", "int32", (1, 2)),
        Field("max_bytes", "int32", (1, 2)),
        Field("max_records", "int32", (1, 2)),
        Field("batch_size", "int32", (1, 2)),
        Field("share_acquire_mode", "int8", (2, 2)),
        Field("is_renew_ack", "bool", (2, 2)),
        Field("topics", Array(FetchTopic), (1, 2)),
        Field("forgotten_topics_data", Array(ForgottenTopic), (1, 2)),
    )
