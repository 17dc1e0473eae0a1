"""Whether the client of a session may do what a row of the table needs: of a node with an authorizer.

Owns `Authorizer`. What was decided is kept for each principal and host (`session.View`) until an entry changes, so that
a request pays one lookup for each resource.

Must never decide by itself: that is `acls.AclImage`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from tanist.controller.image.acls import Acl
from tanist.security.acls import AclImage
from tanist.security.principal import Principal
from tanist.security.requirements import Row
from tanist.security.session import Access, Session, View
from tanist.wire.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS, ResourceType

MAX_DECISIONS: Final = 200_000
"""Kept at once; then all are forgotten."""


class OnDenied(Protocol):
    """Hears of each denial that is one for the operator."""

    def __call__(self, session: Session, row: Row, name: str) -> None:
        """The session's client may not do what the row needs, on this resource."""


class Authorizer(Access):
    """A node with an authorizer."""

    enabled = True

    def __init__(self, super_users: Iterable[str], *, allow_everyone: bool, on_denied: OnDenied) -> None:
        self._acls = AclImage(super_users=super_users, allow_everyone=allow_everyone)
        self._on_denied = on_denied
        self._views: dict[tuple[Principal, str], View] = {}
        self._decisions = 0
        self._epoch = 0
        self.loaded = False

    def change(self, removed: Iterable[Acl], added: Iterable[Acl]) -> None:
        """Entries were committed; what was decided before does not hold any more."""
        self._acls.change(removed, added)
        self._forget()

    def load(self) -> None:
        """All that is committed is known."""
        if not self.loaded:
            self.loaded = True
            self._forget()

    def may(self, session: Session, row: Row, name: str | None = CLUSTER_NAME) -> bool:
        known = self.allows(session, row, name)
        if not known and row.logged and self.loaded:
            self._on_denied(session, row, name or "")
        return known

    def allows(self, session: Session, row: Row, name: str | None) -> bool:
        """`may`, asked by who will ask again before anything is denied."""
        view = session.view
        if view is None or view.epoch != self._epoch or view.principal is not session.principal:
            view = self._view(session)
        allowed = view.allowed.get(row)
        if allowed is None:
            allowed = view.allowed[row] = {}
        known = allowed.get(name)  # type: ignore[arg-type]  # None is nobody's
        if known is None:
            known = self._decide(session, row, name)
            if name is not None:
                self._count()
                allowed[name] = known
        return known

    def operations(self, session: Session, row: Row, name: str = CLUSTER_NAME) -> int:
        view = session.view
        if view is None or view.epoch != self._epoch or view.principal is not session.principal:
            view = self._view(session)
        known = view.operations.get((row, name))
        if known is None:
            kind = row.needs[0].resource_type
            who, host = str(session.principal), session.host
            known = sum(
                1 << operation
                for operation in SUPPORTED_OPERATIONS[kind]
                if self._allows(who, host, operation, kind, name)
            )
            self._count()
            view.operations[row, name] = known
        return known

    def visible(self, session: Session) -> object:
        if str(session.principal) in self._acls.super_users:
            return None
        return self._acls.epoch, self.loaded, session.principal, session.host

    def _decide(self, session: Session, row: Row, name: str | None) -> bool:
        who, host = str(session.principal), session.host
        for need in row.needs:
            kind = need.resource_type
            if need.any_name:
                if self.loaded and self._acls.by_type(who, host, need.operation, kind):
                    return True
            else:
                resource = CLUSTER_NAME if kind is ResourceType.CLUSTER else name
                if resource is not None and self._allows(who, host, need.operation, kind, resource):
                    return True
        return False

    def _allows(self, who: str, host: str, operation: int, kind: int, name: str) -> bool:
        if not self.loaded:
            return who in self._acls.super_users
        return self._acls.decide(who, host, operation, kind, name)

    def _view(self, session: Session) -> View:
        key = (session.principal, session.host)
        view = self._views.get(key)
        if view is None:
            self._count()
            view = self._views[key] = View(self._epoch, session.principal)
        session.view = view
        session.principal = view.principal  # the same object: `may` compares no texts
        return view

    def _count(self) -> None:
        self._decisions += 1
        if self._decisions > MAX_DECISIONS:
            self._forget()

    def _forget(self) -> None:
        self._epoch += 1
        self._decisions = 0
        self._views.clear()
