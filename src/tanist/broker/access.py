"""The authorizer of a node, if it has one: fed by the committed metadata, and its denials reported to the operator.

Owns `access_of` and `Denials`. Clients decide how often they are denied, and must not fill the disk with it: each
principal, operation and resource has one event in a second, and all of them have so many.
"""

from __future__ import annotations

from typing import Final, TypeAlias
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.counters import Metrics
from tanist.broker.metadata.view import MetadataView
from tanist.controller.image.delta import ImageDelta
from tanist.events.process import AuthorizationDenied
from tanist.events.stream import Events
from tanist.ports import Clock
from tanist.security.authorizer import Authorizer
from tanist.security.principal import Principal
from tanist.security.requirements import Row
from tanist.security.session import OPEN, Access, Session
from tanist.wire.acls import CLUSTER_NAME, ResourceType

_INTERVAL_MS: Final = 1_000
_EVENTS_MAX: Final = 100
"""In one interval, of all clients."""
_KEYS_MAX: Final = 1_000

_Key: TypeAlias = tuple[Principal, int, int, str]


class Denials:
    """Reports denials (`security.authorizer.OnDenied`)."""

    def __init__(self, clock: Clock, events: Events, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._events = events
        self._left_out: dict[_Key, int] = {}
        """How many of the last interval had no event, of those that had one."""
        self._known: dict[_Key, int] = {}
        self._ends_ms = 0
        self._emitted = 0

    def __call__(self, session: Session, row: Row, name: str) -> None:
        """One more. The last of the needs is named: the others are wider."""
        self._metrics.authorization_denied += 1
        now_ms = self._clock.now_ms()
        if now_ms >= self._ends_ms:
            self._ends_ms = now_ms + _INTERVAL_MS
            self._left_out, self._known, self._emitted = self._known, {}, 0
        need = row.needs[-1]
        resource = CLUSTER_NAME if need.resource_type is ResourceType.CLUSTER else name
        key = (session.principal, need.operation, need.resource_type, resource)
        if key in self._known:
            self._known[key] += 1
            return
        if len(self._known) < _KEYS_MAX:
            self._known[key] = 0
        if self._emitted >= _EVENTS_MAX:
            return
        self._emitted += 1
        self._events.emit(
            AuthorizationDenied(
                principal=str(session.principal),
                host=session.host,
                operation=need.operation.name,
                resource_type=need.resource_type.name,
                resource=resource,
                api=row.api.name,
                left_out=self._left_out.pop(key, 0),
            )
        )


class TopicAccess:
    """What clients may do with topics, which requests name by their names or ids."""

    __slots__ = ("_may", "_metadata", "allows")

    def __init__(self, authorizer: Authorizer, metadata: MetadataView) -> None:
        self._may = authorizer.may
        self.allows = authorizer.allows
        """By name; for who asks again before anything is denied."""
        self._metadata = metadata

    def may(self, session: Session, row: Row, topic: str | UUID) -> bool:
        """Whether the client may do what the row needs. An id that is nobody's is not denied: it is unknown to all."""
        name = topic if isinstance(topic, str) else self._metadata.topic_name(topic)
        return name is None or self._may(session, row, name)


def topic_access(access: Access, metadata: MetadataView) -> TopicAccess | None:
    """None of a node without an authorizer, which asks nothing."""
    return TopicAccess(access, metadata) if isinstance(access, Authorizer) else None


def access_of(context: NodeContext, metadata: MetadataView) -> Access:
    """What decides on the node, by the access control lists in its metadata."""
    settings = context.config.authorizer
    if settings is None:
        return OPEN
    denials = Denials(context.clock, context.events, context.metrics)
    authorizer = Authorizer(settings.super_users, allow_everyone=settings.allow_everyone, on_denied=denials)

    def changed(delta: ImageDelta) -> None:
        if delta.acls:
            acls = metadata.image.acls
            authorizer.change(
                [before for before in delta.acls.values() if before is not None],
                [acls[acl_id] for acl_id in delta.acls if acl_id in acls],
            )

    metadata.on_change(changed)
    return authorizer
