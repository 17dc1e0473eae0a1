"""Random entries and questions about them, close enough to each other to meet; for our authorizer and for Apache's."""

from __future__ import annotations

from random import Random
from typing import Final

from tanist.controller.image.acls import Acl
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType

TYPES: Final = tuple(each for each in ResourceType if each > ResourceType.ANY)
OPERATIONS: Final = tuple(each for each in AclOperation if each > AclOperation.ALL)
PRINCIPALS: Final = ("User:a", "User:b", "User:A", "Group:a", "User:a:b", "User:CN=a,O=b")
HOSTS: Final = ("10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1")
RANGES: Final = ("10.0.0.0/31", "10.0.0.2/32", "10.9.9.9/8", "::/64", "0.0.0.0/0", "10.0.0.0/33", "a/8")
"""Of hosts, as entries name them since 4.4-IV1; the last two are none."""
NAMES: Final = ("a", "ab", "abc", "abcd", "b", "*", "*a", "hardcode", "hard", "kafka-cluster", "é", "\U0001f600x")
"""Of resources; a pattern may have each."""


def random_acl(draw: Random, *, ranges: bool = False) -> Acl:
    """An entry. `ranges`: its host may be one of those."""
    return Acl(
        draw.choice((*TYPES[:2] * 3, *TYPES)),
        draw.choice(NAMES),
        draw.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        draw.choice((*PRINCIPALS, "User:*", "User:*", "Group:*")),
        draw.choice((*HOSTS, *(RANGES if ranges else ()), "*", "*", "*")),
        draw.choice((AclOperation.ALL, *OPERATIONS)),
        draw.choice((AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY)),
    )
