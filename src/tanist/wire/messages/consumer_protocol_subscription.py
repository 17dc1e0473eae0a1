"""ConsumerProtocolSubscription: versions 0 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Message, Struct


class TopicPartition(Struct):
    topic: str = ""
    partitions: tuple[int, ...] = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (1, 3)),
        Field("partitions", Array("int32"), (1, 3)),
    )


class ConsumerProtocolSubscription(Message):
    topics: tuple[str, ...] = ()
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = -1
    rack_id: str | None = None

    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", Array("string"), (0, 3)),
        Field("user_data", "bytes", (0, 3), nullable=(0, 3)),
        Field("owned_partitions", Array(TopicPartition), (1, 3)),
        Field("generation_id", "int32", (2, 3)),
        Field("rack_id", "string", (3, 3), nullable=(3, 3)),
    )
