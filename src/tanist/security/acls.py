"""What access control lists allow: the decisions of Apache Kafka's StandardAuthorizer.

Owns `AclImage`: the entries by the patterns of their resources, and the two questions that they answer. An entry that
denies wins over all that allow. READ, WRITE, DELETE and ALTER allow DESCRIBE as well, and ALTER_CONFIGS allows
DESCRIBE_CONFIGS; to deny them denies nothing else. Where no entry is about a resource at all,
`allow.everyone.if.no.acl.found` decides. Super users may do everything. An entry's host is an address, a range of them
or `*`.

Three oddities are Apache Kafka's, and kept: a literal `*` stands for all names but those that begin with `*`; a
question about any resource of a type (`by_type`) knows no implied operations; and it first asks about a resource that
is called "hardcode". `tests/interop/test_interop_authorizer.py` compares both questions with the original.

Must not know who asks by which request: that is `requirements`' and `authorizer`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tanist.controller.image.acls import Acl
from tanist.wire.acls import ALL_USERS, WILDCARD, AclOperation, AclPermission, PatternType
from tanist.wire.address_ranges import is_in_range

_IMPLYING: Final = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}),
}
"""The operations of an entry that allow another one as well."""
_HARD_CODED: Final = "hardcode"
"""The name of the resource by which `by_type` finds super users."""


class _Pattern:
    """The entries about one pattern, by their principals."""

    __slots__ = ("_entries", "count")

    def __init__(self) -> None:
        self._entries: dict[str, list[Acl]] = {}
        self.count = 0

    def add(self, acl: Acl) -> None:
        self._entries.setdefault(acl.principal, []).append(acl)
        self.count += 1

    def remove(self, acl: Acl) -> None:
        entries = self._entries[acl.principal]
        entries.remove(acl)
        if not entries:
            del self._entries[acl.principal]
        self.count -= 1

    def about(self, principal: str, host: str) -> Iterator[Acl]:
        """The entries for the principal at the host."""
        for who in (principal, ALL_USERS) if principal != ALL_USERS else (principal,):
            for acl in self._entries.get(who, ()):
                named = acl.host
                if named in (WILDCARD, host) or ("/" in named and is_in_range(host, named)):
                    yield acl


class _Resources:
    """The patterns of one resource type."""

    __slots__ = ("_lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, _Pattern] = {}
        self.prefixed: dict[str, _Pattern] = {}
        self._lengths: tuple[int, ...] | None = ()
        """Of the prefixes, the shortest first; None when they have to be looked for."""

    def change(self, acl: Acl, *, add: bool) -> None:
        prefixed = acl.pattern_type == PatternType.PREFIXED
        if not prefixed and acl.pattern_type != PatternType.LITERAL:
            return  # a filter's, or of a later version: it stands for no name
        patterns = self.prefixed if prefixed else self.literal
        if add:
            pattern = patterns.get(acl.resource_name)
            if pattern is None:
                pattern = patterns[acl.resource_name] = _Pattern()
            pattern.add(acl)
        else:
            pattern = patterns[acl.resource_name]
            pattern.remove(acl)
            if not pattern.count:
                del patterns[acl.resource_name]
        if prefixed:
            self._lengths = None

    def matching(self, name: str) -> Iterator[_Pattern]:
        """The patterns that stand for the name."""
        literal = self.literal
        pattern = literal.get(name)
        if pattern is not None:
            yield pattern
        if not name.startswith(WILDCARD):
            pattern = literal.get(WILDCARD)
            if pattern is not None:
                yield pattern
        if self._lengths is None:
            self._lengths = tuple(sorted({len(prefix) for prefix in self.prefixed}))
        for length in self._lengths:
            if length > len(name):
                break
            pattern = self.prefixed.get(name[:length])
            if pattern is not None:
                yield pattern


class AclImage:
    """The entries, and who may do everything whatever they say."""

    __slots__ = ("_types", "allow_everyone", "epoch", "super_users")

    def __init__(
        self, acls: Iterable[Acl] = (), *, super_users: Iterable[str] = (), allow_everyone: bool = False
    ) -> None:
        """`super_users`: as `principal.parse_principal` writes them. `allow_everyone`: where no entry is about it."""
        self._types: dict[int, _Resources] = {}
        self.super_users = frozenset(super_users)
        self.allow_everyone = allow_everyone
        self.epoch = 0
        """Grows with every change; what was decided in another epoch does not hold any more."""
        self.change((), acls)

    def change(self, removed: Iterable[Acl], added: Iterable[Acl]) -> None:
        """Take entries out, and others in."""
        for acl in removed:
            self._types[acl.resource_type].change(acl, add=False)
        for acl in added:
            self._types.setdefault(acl.resource_type, _Resources()).change(acl, add=True)
        self.epoch += 1

    def decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Whether the principal, at the host, may do that on the resource of that type and name."""
        if principal in self.super_users:
            return True
        resources = self._types.get(resource_type)
        if resources is None:
            return self.allow_everyone
        implying = _IMPLYING.get(operation)  # type: ignore[call-overload]  # an operation of a later version is its own
        known = allowed = False
        for pattern in resources.matching(name):
            known = True
            for acl in pattern.about(principal, host):
                given = acl.operation
                if acl.permission == AclPermission.ALLOW:
                    if given == operation or given == AclOperation.ALL or (implying is not None and given in implying):
                        allowed = True
                elif given == operation or given == AclOperation.ALL:
                    return False
        return allowed if known else self.allow_everyone

    def by_type(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether there is any resource of that type on which the principal, at the host, may do that."""
        if self.decide(principal, host, operation, resource_type, _HARD_CODED):
            return True
        resources = self._types.get(resource_type)
        if resources is None:
            return False
        allowed: list[tuple[str, bool]] = []
        denied: tuple[set[str], set[str]] = (set(), set())
        for prefixed, patterns in enumerate((resources.literal, resources.prefixed)):
            for name, pattern in patterns.items():
                for acl in pattern.about(principal, host):
                    if acl.operation not in (operation, AclOperation.ALL):
                        continue
                    if acl.permission == AclPermission.ALLOW:
                        allowed.append((name, bool(prefixed)))
                    elif acl.permission == AclPermission.DENY:
                        denied[prefixed].add(name)
        literal, prefixes = denied
        if WILDCARD in literal:
            return False
        return any(
            (name == WILDCARD and not prefixed)
            or not (
                (not prefixed and name in literal)
                or any(name[:length] in prefixes for length in range(1, len(name) + 1))
            )
            for name, prefixed in allowed
        )
