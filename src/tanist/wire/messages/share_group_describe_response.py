"""ShareGroupDescribeResponse: API key 77, version 1.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from tanist.wire.schema import ZERO_UUID, Array, Field, Response, Struct, own


class TopicPartitions(Struct):
    topic_id: UUID = ZERO_UUID
    topic_name: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", (1, 1)),
        Field("topic_name", "string", (1, 1)),
        Field("partitions", Array("int32"), (1, 1)),
    )


class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_partitions", Array(TopicPartitions), (1, 1)),)


class Member(Struct):
    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    assignment: Assignment = own(Assignment)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (1, 1)),
        Field("rack_id", "string", (1, 1), nullable=(1, 1)),
        Field("member_epoch", "int32", (1, 1)),
        Field("client_id", "string", (1, 1)),
        Field("client_host", "string", (1, 1)),
        Field("subscribed_topic_names", Array("string"), (1, 1)),
        Field("assignment", Assignment, (1, 1)),
    )


class DescribedGroup(Struct):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[Member, ...] = ()
    authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", (1, 1)),
        Field("error_message", "string", (1, 1), nullable=(1, 1)),
        Field("group_id", "string", (1, 1)),
        Field("group_state", "string", (1, 1)),
        Field("group_epoch", "int32", (1, 1)),
        Field("assignment_epoch", "int32", (1, 1)),
        Field("assignor_name", "string", (1, 1)),
        Field("members", Array(Member), (1, 1)),
        Field("authorized_operations", "int32", (1, 1)),
    )


class ShareGroupDescribeResponse(Response):
    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()

    API_KEY: ClassVar[int] = 77
    VERSIONS: ClassVar[tuple[int, int]] = (1, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (1, 1)),
        Field("groups", Array(DescribedGroup), (1, 1)),
    )
