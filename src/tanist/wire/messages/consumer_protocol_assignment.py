"""ConsumerProtocolAssignment: versions 0 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Message, Struct


class TopicPartition(Struct):
    topic: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 3)),
        Field("partitions", Array("int32"), (0, 3)),
    )


class ConsumerProtocolAssignment(Message):
    assigned_partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None

    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("assigned_partitions", Array(TopicPartition), (0, 3)),
        Field("user_data", "bytes", (0, 3), nullable=(0, 3)),
    )
