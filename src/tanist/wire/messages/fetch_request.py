"""FetchRequest: API key 1, versions 4 to 18.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Request, Struct, own


class ReplicaState(Struct):
    replica_id: int = -1
    replica_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", (15, 18)),
        Field("replica_epoch", "int64", (15, 18)),
    )


class FetchPartition(Struct):
    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: UUID = ZERO_UUID
    high_watermark: int = 9223372036854775807

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", (4, 18)),
        Field("current_leader_epoch", "int32", (9, 18)),
        Field("fetch_offset", "int64", (4, 18)),
        Field("last_fetched_epoch", "int32", (12, 18)),
        Field("log_start_offset", "int64", (5, 18)),
        Field("partition_max_bytes", "int32", (4, 18)),
        Field("replica_directory_id", "uuid", (17, 18), tag=0, tagged=(17, 18)),
        Field("high_watermark", "int64", (18, 18), tag=1, tagged=(18, 18)),
    )


class FetchTopic(Struct):
    topic: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[FetchPartition, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (4, 12)),
        Field("topic_id", "uuid", (13, 18)),
        Field("partitions", Array(FetchPartition), (4, 18)),
    )


class ForgottenTopic(Struct):
    topic: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (7, 12)),
        Field("topic_id", "uuid", (13, 18)),
        Field("partitions", Array("int32"), (7, 18)),
    )


class FetchRequest(Request):
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState = own(ReplicaState)
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: tuple[FetchTopic, ...] = ()
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()
    rack_id: str = ""

    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (4, 18)
    FLEXIBLE_FROM: ClassVar[int | None] = 12
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", (12, 18), nullable=(12, 18), tag=0, tagged=(12, 18)),
        Field("replica_id", "int32", (4, 14)),
        Field("replica_state", ReplicaState, (15, 18), tag=1, tagged=(15, 18)),
        Field("max_wait_ms", "int32", (4, 18)),
        Field("min_bytes", "int32", (4, 18)),
        Field("max_bytes", "int32", (4, 18)),
        Field("isolation_level", "int8", (4, 18)),
        Field("session_id", "int32", (7, 18)),
        Field("session_epoch", "int32", (7, 18)),
        Field("topics", Array(FetchTopic), (4, 18)),
        Field("forgotten_topics_data", Array(ForgottenTopic), (7, 18)),
        Field("rack_id", "string", (11, 18)),
    )
