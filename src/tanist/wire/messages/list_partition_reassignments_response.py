"""ListPartitionReassignmentsResponse: API key 46, version 0.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Response, Struct


class OngoingPartitionReassignment(Struct):
    partition_index: int = 0
    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", (0, 0)),
        Field("replicas", Array("int32"), (0, 0)),
        Field("adding_replicas", Array("int32"), (0, 0)),
        Field("removing_replicas", Array("int32"), (0, 0)),
    )


class OngoingTopicReassignment(Struct):
    name: str = ""
    partitions: tuple[OngoingPartitionReassignment, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", (0, 0)),
        Field("partitions", Array(OngoingPartitionReassignment), (0, 0)),
    )


class ListPartitionReassignmentsResponse(Response):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: tuple[OngoingTopicReassignment, ...] = ()

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 0)),
        Field("error_code", "int16", (0, 0)),
        Field("error_message", "string", (0, 0), nullable=(0, 0)),
        Field("topics", Array(OngoingTopicReassignment), (0, 0)),
    )
