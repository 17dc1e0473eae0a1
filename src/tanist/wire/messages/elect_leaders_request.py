"""ElectLeadersRequest: API key 43, versions 0 to 3.

Written by tools/generate_messages.py; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Array, Field, Request, Struct


class TopicPartitions(Struct):
    topic: str = ""
    partitions: tuple[int, ...] = ()
    desired_leaders: tuple[int, ...] | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", (0, 3)),
        Field("partitions", Array("int32"), (0, 3)),
        Field("desired_leaders", Array("int32"), (3, 3), nullable=(3, 3)),
    )


class ElectLeadersRequest(Request):
    election_type: int = 0
    topic_partitions: tuple[TopicPartitions, ...] | None = ()
    timeout_ms: int = 60000

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int | None] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("election_type", "int8", (1, 3)),
        Field("topic_partitions", Array(TopicPartitions), (0, 3), nullable=(0, 3)),
        Field("timeout_ms", "int32", (0, 3)),
    )
