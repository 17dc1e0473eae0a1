"""ConsumerGroupDescribeResponse: API key 69, versions 0 to 1.

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
        Field("topic_id", "uuid", (0, 1)),
        Field("topic_name", "string", (0, 1)),
        Field("partitions", Array("int32"), (0, 1)),
    )


class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("topic_partitions", Array(TopicPartitions), (0, 1)),)


class Member(Struct):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    assignment: Assignment = own(Assignment)
    target_assignment: Assignment = own(Assignment)
    member_type: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("member_id", "string", (0, 1)),
        Field("instance_id", "string", (0, 1), nullable=(0, 1)),
        Field("rack_id", "string", (0, 1), nullable=(0, 1)),
        Field("member_epoch", "int32", (0, 1)),
        Field("client_id", "string", (0, 1)),
        Field("client_host", "string", (0, 1)),
        Field("subscribed_topic_names", Array("string"), (0, 1)),
        Field("subscribed_topic_regex", "string", (0, 1), nullable=(0, 1)),
        Field("assignment", Assignment, (0, 1)),
        Field("target_assignment", Assignment, (0, 1)),
        Field("member_type", "int8", (1, 1)),
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
        Field("error_code", "int16", (0, 1)),
        Field("error_message", "string", (0, 1), nullable=(0, 1)),
        Field("group_id", "string", (0, 1)),
        Field("group_state", "string", (0, 1)),
        Field("group_epoch", "int32", (0, 1)),
        Field("assignment_epoch", "int32", (0, 1)),
        Field("assignor_name", "string", (0, 1)),
        Field("members", Array(Member), (0, 1)),
        Field("authorized_operations", "int32", (0, 1)),
    )


class ConsumerGroupDescribeResponse(Response):
    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()

    API_KEY: ClassVar[int] = 69
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int | None] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", (0, 1)),
        Field("groups", Array(DescribedGroup), (0, 1)),
    )
