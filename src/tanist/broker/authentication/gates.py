"""The gates of a node's listeners, and what is counted and logged of them.

Owns the refusals that are held back, for all listeners together, and one line a second about those that were refused.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.broker.authentication.delegation_tokens import TokenCredentials
from tanist.broker.authentication.gate import DelayedRefusals, SaslGate, guard
from tanist.broker.authentication.listener import Mechanisms
from tanist.broker.context import NodeContext
from tanist.broker.network.client_connection import ClientConnection, ListenerApis
from tanist.broker.throttled import Throttled
from tanist.controller.image.image import MetadataImage
from tanist.controller.security.tokens import TokenSettings
from tanist.events.process import AuthenticationFailed
from tanist.security.session import Session

_REFUSED_INTERVAL_MS = 1_000


class Gates:
    """Of one node."""

    def __init__(self, context: NodeContext, image: Callable[[], MetadataImage]) -> None:
        """`image`: the metadata as this node knows it now."""
        self._context = context
        self._image = image
        self._delayed = DelayedRefusals(context.clock, context.config.connection_failed_authentication_delay_ms)
        self._tokens = TokenCredentials(
            TokenSettings.of(context.config.static), image, context.random.bytes, context.clock.wall_ms
        )
        self._refused = Throttled(context.clock, context.events, _REFUSED_INTERVAL_MS)

    @property
    def delayed_count(self) -> int:
        """Refusals that are held back."""
        return len(self._delayed)

    def of_listener(self, name: str, apis: ListenerApis) -> Callable[[ClientConnection], None] | None:
        """What guards each new connection of a listener; None: its clients need not authenticate."""
        config = self._context.config.sasl.listeners.get(name)
        if config is None:
            return None
        mechanisms = Mechanisms(self._context, config, self._image, self._tokens)
        context, delayed = self._context, self._delayed

        def guard_new(connection: ClientConnection) -> None:
            gate = SaslGate(
                connection,
                mechanisms,
                delayed,
                context.clock,
                context.disk,
                self,
                apis,
                context.config.socket_request_max_bytes,
            )
            guard(connection, gate, mechanisms.max_receive_bytes)

        return guard_new

    # -- what the gates tell

    def authenticated(self, session: Session) -> None:
        _count(self._context.metrics.authentications, session)

    def refused(self, session: Session, peer: str, mechanism: str, reason: str) -> None:
        _count(self._context.metrics.failed_authentications, session)
        self._refused.emit(lambda left_out: AuthenticationFailed(session.listener, peer, mechanism, reason, left_out))

    def expired(self, session: Session) -> None:
        _count(self._context.metrics.expired_connections, session)


def _count(counts: dict[str, int], session: Session) -> None:
    counts[session.listener] = counts.get(session.listener, 0) + 1
