"""What the committed metadata says of access, record by record: entries, credentials of users, delegation tokens.

Owns a model of Apache Kafka's StandardAuthorizer that shares nothing with `tanist.security`: it looks at each entry in
turn. Knows the whole history, so that it can be asked about any prefix of the metadata log. Reads records and imports
no checker; operators and clients read it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from uuid import UUID

from tanist.sim.prefixes import Prefixes
from tanist.wire.acls import AclOperation, AclPermission, PatternType
from tanist.wire.metadata import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from tanist.wire.schema import MetadataRecord

_ANYBODY: Final = "User:*"
_ALL: Final = "*"
_IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}


class Need(NamedTuple):
    """An operation on a resource, which a request needs. Numbers are those of `wire.acls`."""

    operation: int
    resource_type: int
    name: str


@dataclass(frozen=True, slots=True)
class Access:
    """What some prefix of the metadata log says."""

    entries: Mapping[UUID, AccessControlEntryRecord] = field(default_factory=dict)
    users: Mapping[tuple[str, int], UserScramCredentialRecord] = field(default_factory=dict)
    """By name and mechanism."""
    tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)

    def allows(self, principal: str, host: str, need: Need) -> bool:
        """Whether an entry allows it, and none denies it."""
        return decision(self.entries.values(), principal, host, need) is True


def decision(entries: Iterable[AccessControlEntryRecord], principal: str, host: str, need: Need) -> bool | None:
    """What the entries say, read one by one. None: no entry is about the resource."""
    of_resource = [
        entry for entry in entries if entry.resource_type == need.resource_type and _stands_for(entry, need.name)
    ]
    if not of_resource:
        return None
    about = [entry for entry in of_resource if entry.principal in (principal, _ANYBODY) and entry.host in (host, _ALL)]
    plainly = (need.operation, AclOperation.ALL)
    giving = (*plainly, *_IMPLIED_BY.get(AclOperation(need.operation), ()))
    denied = any(entry.permission_type == AclPermission.DENY and entry.operation in plainly for entry in about)
    allowed = any(entry.permission_type == AclPermission.ALLOW and entry.operation in giving for entry in about)
    return allowed and not denied


def _stands_for(entry: AccessControlEntryRecord, name: str) -> bool:
    if entry.pattern_type == PatternType.PREFIXED:
        return name.startswith(entry.resource_name)
    return entry.resource_name == name or (entry.resource_name == _ALL and not name.startswith(_ALL))


class AccessOracle(Prefixes[Access]):
    """The committed history of access."""

    def __init__(self, super_users: Iterable[str]) -> None:
        """`super_users`: principals that may do everything."""
        super().__init__(Access())
        self.super_users = frozenset(super_users)

    def replay(self, offset: int, record: MetadataRecord) -> None:
        """Another committed record, in order. `offset`: of the last record of its batch."""
        self.became(offset, _replayed(self.newest, record))

    def may(self, access: Access, principal: str, host: str, need: Need) -> bool:
        return principal in self.super_users or access.allows(principal, host, need)


def _replayed(access: Access, record: MetadataRecord) -> Access:
    if isinstance(record, AccessControlEntryRecord):
        return replace(access, entries={**access.entries, record.id: record})
    if isinstance(record, RemoveAccessControlEntryRecord):
        return replace(access, entries={key: each for key, each in access.entries.items() if key != record.id})
    if isinstance(record, UserScramCredentialRecord):
        return replace(access, users={**access.users, (record.name, record.mechanism): record})
    if isinstance(record, RemoveUserScramCredentialRecord):
        gone = (record.name, record.mechanism)
        return replace(access, users={key: each for key, each in access.users.items() if key != gone})
    if isinstance(record, DelegationTokenRecord):
        return replace(access, tokens={**access.tokens, record.token_id: record})
    if isinstance(record, RemoveDelegationTokenRecord):
        return replace(access, tokens={key: each for key, each in access.tokens.items() if key != record.token_id})
    return access
