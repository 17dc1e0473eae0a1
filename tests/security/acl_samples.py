"""Random entries and questions about them, close enough to each other to meet; for our authorizer and for Apache's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from tanist.controller.image.acls import Acl
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType

T = TypeVar("T")
Pick = Callable[[Sequence[T]], T]

TYPES: Final = tuple(each for each in ResourceType if each > ResourceType.ANY)
OPERATIONS: Final = tuple(each for each in AclOperation if each > AclOperation.ALL)
PRINCIPALS: Final = ("User:a", "User:b", "User:A", "Group:a", "User:a:b", "User:CN=a,O=b")
HOSTS: Final = ("10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1")
NAMES: Final = ("a", "ab", "abc", "abcd", "b", "*", "*a", "hardcode", "hard", "kafka-cluster", "é", "\U0001f600x")
"""Of resources; a pattern may have each."""


def random_acl(pick: Callable[[Sequence[object]], object]) -> Acl:
    """An entry."""
    return Acl(
        pick(TYPES[:2] * 3 + TYPES),  # type: ignore[arg-type]
        pick(NAMES),  # type: ignore[arg-type]
        pick((PatternType.LITERAL, PatternType.PREFIXED)),  # type: ignore[arg-type]
        pick((*PRINCIPALS, "User:*", "User:*", "Group:*")),  # type: ignore[arg-type]
        pick((*HOSTS, "*", "*", "*")),  # type: ignore[arg-type]
        pick((AclOperation.ALL, *OPERATIONS)),  # type: ignore[arg-type]
        pick((AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY)),  # type: ignore[arg-type]
    )
