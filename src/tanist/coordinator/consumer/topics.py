"""What a group must know of the cluster's topics, and which of them a regular expression means.

Expressions are RE2's, as in Apache Kafka since 4.0: they come from anybody who can connect, and are matched against all
topics on the coordinator, so that an engine which backtracks would let one client stop a broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Protocol
from uuid import UUID


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
        """All topics, internal ones too: an expression finds what it matches, as in Apache Kafka."""


class InvalidRegex(Exception):
    """The expression cannot be compiled; the message says why."""


def matching(regex: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that the whole expression matches, sorted. `InvalidRegex` if it is none."""
    import re2  # only a coordinator of such a group needs it

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(regex, options)
    except re2.error as error:
        detail = error.args[0] if error.args else error
        raise InvalidRegex(detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)) from error
    return tuple(sorted(name for name in names if compiled.fullmatch(name) is not None))


def hash_of(found: Mapping[str, tuple[UUID, int]]) -> int:
    """64 bits over names, ids and numbers of partitions: another value, another target assignment. 0 for no topics."""
    if not found:
        return 0
    digest = blake2b(digest_size=8)
    for name in sorted(found):
        topic_id, partitions = found[name]
        digest.update(f"{name}\0{partitions}\0".encode() + topic_id.bytes)
    return int.from_bytes(digest.digest(), "big", signed=True)
