"""What a list of entries allows, read off it one by one: the image has to decide the same."""

from __future__ import annotations

from collections.abc import Iterable

from tanist.controller.image.acls import Acl
from tanist.wire.acls import AclOperation, AclPermission, PatternType

_ALLOWS = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}


def model(acls: Iterable[Acl], principal: str, host: str, operation: AclOperation, kind: int, name: str) -> bool | None:
    """None: no entry is about the resource."""
    found = [each for each in acls if each.resource_type == kind and _stands_for(each, name)]
    if not found:
        return None
    about = [each for each in found if each.principal in (principal, "User:*") and each.host in (host, "*")]
    if any(each.permission == AclPermission.DENY and each.operation in (operation, AclOperation.ALL) for each in about):
        return False
    return any(
        each.permission == AclPermission.ALLOW
        and each.operation in {operation, AclOperation.ALL} | _ALLOWS.get(operation, set())
        for each in about
    )


def _stands_for(entry: Acl, name: str) -> bool:
    if entry.pattern_type == PatternType.PREFIXED:
        return name.startswith(entry.resource_name)
    return entry.resource_name == name or (entry.resource_name == "*" and not name.startswith("*"))
