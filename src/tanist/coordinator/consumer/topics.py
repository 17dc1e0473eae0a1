"""The cluster's topics for a group, and the matches of a regular expression among them.

Expressions are RE2's, as in Apache Kafka since 4.0: any client can send them, and the coordinator matches them against
all topics, so with a backtracking engine one client could stop a broker.
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
        """All topics, internal ones too: an expression may match them, as in Apache Kafka."""


class InvalidRegex(Exception):
    """The expression does not compile; the message has the reason."""


def matching(regex: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that the whole expression matches, sorted. `InvalidRegex` if it does not compile."""
    import re2  # imported late: only a coordinator of such a group needs it

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
