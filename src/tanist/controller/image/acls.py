"""An access control entry, as the metadata log has it.

Owns `Acl`: `image.acls` has them by their ids. What they allow and deny is decided in `tanist.security.acls`.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from uuid import UUID

from tanist.wire.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord


@dataclass(frozen=True, slots=True)
class Acl:
    """Whom an operation on the resources of a pattern is allowed to, or denied. Numbers are those of `wire.acls`."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    @classmethod
    def of(cls, record: AccessControlEntryRecord) -> Acl:
        """The entry of a record."""
        return cls(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )

    def record(self, acl_id: UUID) -> AccessControlEntryRecord:
        """The record that adds the entry."""
        return AccessControlEntryRecord(
            id=acl_id,
            resource_type=self.resource_type,
            resource_name=self.resource_name,
            pattern_type=self.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission,
        )


def replay_acl(
    acls: MutableMapping[UUID, Acl], record: AccessControlEntryRecord | RemoveAccessControlEntryRecord
) -> Acl | None:
    """Add the record's entry, or remove it; gives what was there. `ValueError` when there is none to remove."""
    before = acls.get(record.id)
    if isinstance(record, AccessControlEntryRecord):
        acls[record.id] = Acl.of(record)
    elif acls.pop(record.id, None) is None:
        raise ValueError(f"there is no ACL {record.id} to remove")
    return before
