"""CreateTopicsResponse: API key 19, versions 2 to 7.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct


class CreatableTopicConfigs(Struct):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (5, 7)),
        Field("value", "string", (5, 7), nullable=(5, 7)),
        Field("read_only", "bool", (5, 7)),
        Field("config_source", "int8", (5, 7)),
        Field("is_sensitive", "bool", (5, 7)),
    )


class CreatableTopicResult(Struct):
    name: str = ""
    topic_id: UUID = ZERO_UUID
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[CreatableTopicConfigs, ...] | None = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 7)),
        Field("topic_id", "uuid", (7, 7)),
        Field("error_code", "int16", (2, 7)),
        Field("error_message", "string", (2, 7), nullable=(2, 7)),
        Field("topic_config_error_code", "int16", (5, 7), tag=0, tagged=(5, 7)),
        Field("num_partitions", "int32", (5, 7)),
        Field("replication_factor", "int16", (5, 7)),
        Field("configs", Array(CreatableTopicConfigs), (5, 7), nullable=(5, 7)),
    )


class CreateTopicsResponse(Response):
    throttle_time_ms: int = 0
    topics: tuple[CreatableTopicResult, ...] = ()

    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (2, 7)
    FLEXIBLE_FROM: ClassVar[int | None] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (2, 7)),
        Field("topics", Array(CreatableTopicResult), (2, 7)),
    )
