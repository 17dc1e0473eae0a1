"""The gates of a node's listeners, and what is counted and logged of them.

Owns the refusals that are held back, for all listeners together, and one line a second about those that were refused.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.broker.authentication.gate import DelayedRefusals, SaslGate, guard
from tanist.broker.authentication.listener import Mechanisms
from tanist.broker.context import NodeContext
from tanist.broker.network.client_connection import ClientConnection, ListenerApis
from tanist.broker.throttled import Throttled
from tanist.controller.image.image import MetadataImage
from tanist.events.process import AuthenticationFailed
from tanist.security.session import Session

_REFUSED_INTERVAL_MS = 1_000


class Gates:
    """Of one node."""

    def __init__(self, context: NodeContext, image: Callable[[], MetadataImage]) -> None:
        """`image`: the metadata as this node knows it now."""
        config = context.config
        self._context = context
        self._delayed = DelayedRefusals(context.clock, config.connection_failed_authentication_delay_ms)
        self._mechanisms = {
            name: Mechanisms(context, listener, image) for name, listener in config.sasl.listeners.items()
        }
        self._refused = Throttled(context.clock, context.events, _REFUSED_INTERVAL_MS)

    def of_listener(self, name: str, apis: ListenerApis) -> Callable[[ClientConnection], None] | None:
        """What guards each new connection of a listener; None: its clients need not authenticate."""
        mechanisms = self._mechanisms.get(name)
        if mechanisms is None:
            return None
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

    def authenticated(self, mechanism: str) -> None:
        self._context.metrics.authentications += 1

    def refused(self, session: Session, peer: str, mechanism: str, reason: str) -> None:
        self._context.metrics.failed_authentications += 1
        self._refused.emit(lambda left_out: AuthenticationFailed(session.listener, peer, mechanism, reason, left_out))

    def expired(self) -> None:
        self._context.metrics.expired_connections += 1
