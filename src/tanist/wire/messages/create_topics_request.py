"""CreateTopicsRequest: API key 19, versions 2 to 7.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class CreatableReplicaAssignment(Struct):
    partition_index: int = 0
    broker_ids: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (2, 7)),
        Field("broker_ids", Array("int32"), (2, 7)),
    )


class CreatableTopicConfig(Struct):
    name: str = ""
    value: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 7)),
        Field("value", "string", (2, 7), nullable=(2, 7)),
    )


class CreatableTopic(Struct):
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (2, 7)),
        Field("num_partitions", "int32", (2, 7)),
        Field("replication_factor", "int16", (2, 7)),
        Field("assignments", Array(CreatableReplicaAssignment), (2, 7)),
        Field("configs", Array(CreatableTopicConfig), (2, 7)),
    )


class CreateTopicsRequest(Request):
    topics: tuple[CreatableTopic, ...] = ()
    timeout_ms: int = 60000
    validate_only: bool = False

    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (2, 7)
    FLEXIBLE_FROM: ClassVar[int | None] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", Array(CreatableTopic), (2, 7)),
        Field("timeout_ms", "int32", (2, 7)),
        Field("validate_only", "bool", (2, 7)),
    )
