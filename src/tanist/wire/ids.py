"""Types of ids, epochs and offsets, the ids with a special meaning, and partitions as requests name them.

At run time these are plain `int`, `str` and `UUID`; the `NewType`s are for signatures where a mix-up would hurt.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final, NamedTuple, NewType, TypeAlias
from uuid import UUID

from tanist.wire.schema import ZERO_UUID

__all__ = [
    "KNOWS_NOTHING_MS",
    "LOST_DIRECTORY",
    "METADATA_TOPIC",
    "METADATA_TOPIC_ID",
    "MIGRATING_DIRECTORY",
    "NO_LEADER",
    "RESERVED_DIRECTORIES",
    "UNASSIGNED_DIRECTORY",
    "ZERO_UUID",
    "BrokerEpoch",
    "BrokerId",
    "LeaderEpoch",
    "Offset",
    "ProducerId",
    "TopicIdPartition",
    "TopicPartition",
    "id_from_text",
    "id_text",
    "indexes_by_topic",
]

BrokerId = NewType("BrokerId", int)
Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
BrokerEpoch = NewType("BrokerEpoch", int)
ProducerId = NewType("ProducerId", int)

NO_LEADER: Final = -1

KNOWS_NOTHING_MS: Final = (1 << 63) - 1
"""The age of a node's metadata (`metadata_age_ms`) that has none yet."""

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = UUID(int=1)
"""The topic id of `__cluster_metadata`, which is fixed."""

MIGRATING_DIRECTORY: Final = ZERO_UUID
"""The replica is from before directories had ids."""
UNASSIGNED_DIRECTORY: Final = UUID(int=1)
"""The replica has not been given a log directory."""
LOST_DIRECTORY: Final = UUID(int=2)
"""The replica's log directory is offline and not known."""
RESERVED_DIRECTORIES: Final = 100
"""Directory ids below this are not ids of directories (KIP-858)."""


TopicIdPartition: TypeAlias = tuple[UUID, int]
"""A partition by its topic's id: the id of a topic is never used again, its name may be."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def id_text(value: UUID) -> str:
    """The 22 characters that Kafka prints for an id: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def id_from_text(text: str) -> UUID:
    """The inverse of `id_text`; `ValueError` if it is none."""
    if len(text) > 24:
        raise ValueError(f"an id has 22 characters, this has {len(text)}")
    try:
        raw = base64.b64decode(text.rstrip("=") + "==", altchars=b"-_", validate=True)
    except ValueError as error:  # binascii.Error is one too
        raise ValueError(f"not an id: {text!r}") from error
    if len(raw) != 16:
        raise ValueError(f"an id has 16 bytes, {text!r} has {len(raw)}")
    return UUID(bytes=raw)


def indexes_by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The sorted indexes of each topic, topics sorted by their names."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return topics
