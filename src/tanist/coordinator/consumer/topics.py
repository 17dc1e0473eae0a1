"""The cluster's topics for a group, and the matches of a regular expression among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Protocol
from uuid import UUID

from tanist.coordinator.regex import full_matcher


class Topics(Protocol):
    """The cluster's topics, as of now."""

    @property
    def version(self) -> int:
        """Grows with every change of the cluster's metadata."""

    def find(self, name: str) -> tuple[UUID, int] | None:
        """The topic's id, and how many partitions it has."""

    def name_of(self, topic_id: UUID) -> str | None:
        """The topic's name; None if it is deleted."""

    def names(self) -> Iterable[str]:
        """All topics, internal ones too: an expression may match them, as in Apache Kafka."""


def every_topic(_name: str) -> bool:
    """Without an authorizer: who may join may hear of all topics."""
    return True


def matching(regex: str, names: Iterable[str], may_describe: Callable[[str], bool] = every_topic) -> tuple[str, ...]:
    """The names that the whole expression matches and that may be heard, sorted. `InvalidRegex` if it is none."""
    matches = full_matcher(regex)
    return tuple(sorted(name for name in names if matches(name) and may_describe(name)))


def hash_of(found: Mapping[str, tuple[UUID, int]]) -> int:
    """64 bits over names, ids and numbers of partitions: another value, another target assignment. 0 for no topics."""
    if not found:
        return 0
    digest = blake2b(digest_size=8)
    for name in sorted(found):
        topic_id, partitions = found[name]
        digest.update(f"{name}\0{partitions}\0".encode() + topic_id.bytes)
    return int.from_bytes(digest.digest(), "big", signed=True)
