"""The listeners of a node and the connections that it has accepted.

Owns both, closes connections that are idle, and warns of clients that send malformed requests or ask for transactions.
The APIs of a listener come with `bind`. A listener's address is taken at the start of the node. Those of the controller
listen at once, those of the broker when the node says so (`open_broker`): until then clients are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from tanist.broker.context import NodeContext
from tanist.broker.endpoints import SECURITY_PROTOCOLS, Endpoint
from tanist.broker.network.admission import Admission, host_rates
from tanist.broker.network.call import RequestMeter
from tanist.broker.network.client_connection import ClientConnection, ListenerApis
from tanist.broker.throttled import Throttled
from tanist.controller.image.client_quotas import ClientQuotas
from tanist.events.process import ListenerFailed, MalformedRequest
from tanist.ports import Connection, ConnectionHandler, Listener, Timer
from tanist.security.connection_limits import Limits
from tanist.security.quotas import Windows
from tanist.security.session import Access, Session, host_of
from tanist.security.ssl_principal import NoMatchingRule
from tanist.wire.apis import ApiKey

_MALFORMED_INTERVAL_MS = 1_000
_FLUSH_AGAIN_MS = 10
_IDLE_CHECK_MS = 30_000
"""Idle connections are looked for so often at least: as late as that they are closed."""


class Connections:
    """Iterates over the open connections, in order of their coming."""

    def __init__(
        self,
        context: NodeContext,
        touch: Callable[[ClientConnection], None],
        broker_lost: Callable[[int, int], None],
        access: Access,
    ) -> None:
        """`touch` a connection that has something to send. `broker_lost`: the broker (id, epoch) whose heartbeats came
        by a connection has ended it.
        """
        self._context = context
        self._touch = touch
        self._broker_lost = broker_lost
        self._access = access
        # A set would be in the order of their addresses, another one in every process.
        self._open: dict[ClientConnection, None] = {}
        self._listeners: dict[str, Listener] = {}
        self._idle_timer: Timer | None = None
        self._malformed = Throttled(context.clock, context.events, _MALFORMED_INTERVAL_MS)
        config = context.config
        windows = Windows(config.quota_window_num, config.quota_window_size_seconds * 1_000)
        names = [endpoint.name for endpoint in config.listeners]
        self._admissions: dict[str, Admission] = {}
        """By listener. Those of the broker share limits, and those of the controller."""
        for role in (
            [name for name in names if name not in config.controller_listener_names],
            [name for name in names if name in config.controller_listener_names],
        ):
            admission = Admission(context, role, config.inter_broker_listener_name, windows, self._open)
            self._admissions.update(dict.fromkeys(role, admission))
        self.requests = context.metrics.requests
        self.meter: RequestMeter | None = None

    def __iter__(self) -> Iterator[ClientConnection]:
        return iter(self._open)

    # -- listeners

    def bind(
        self, endpoint: Endpoint, apis: ListenerApis, guard: Callable[[ClientConnection], None] | None = None
    ) -> None:
        """Take the address of a listener that is to serve `apis`. `OSError` when it is taken.

        `guard` puts a gate before each new connection.
        """

        admission = self._admissions[endpoint.name]
        mapping = self._context.config.tls.mappings.get(endpoint.name)

        def accept(connection: Connection) -> ConnectionHandler:
            session = Session(endpoint.name, endpoint.security_protocol, host_of(connection.peer), access=self._access)
            refused, unheard_ms = admission.admit(session, connection)
            if refused is not None:
                return refused
            client = ClientConnection(self, self._touch, connection, session, apis)
            if mapping is not None:
                try:
                    session.principal = mapping.principal_of(connection.peer_identity)
                except NoMatchingRule as error:
                    client.malformed(error)
            if guard is not None:
                guard(client)
            self._open[client] = None
            if unheard_ms:
                client.mute(unheard_ms)
            return client

        listener = self._listeners[endpoint.name] = self._context.network.bind(
            endpoint.host,
            endpoint.port,
            accept,
            max_frame_bytes=self._context.config.socket_request_max_bytes,
            tls=endpoint.name if endpoint.has_tls else None,
        )
        admission.add(endpoint.name, listener)

    @property
    def admissions(self) -> list[Admission]:
        """What decides who may connect: one of each role."""
        return list(dict.fromkeys(self._admissions.values()))

    def limits_changed(self, limits_of: Callable[[Collection[str]], Limits], quotas: ClientQuotas) -> None:
        """The limits of listeners, or the quotas of addresses, are others."""
        for admission in self.admissions:
            admission.change(limits_of(admission.names), host_rates(quotas))

    def open_controller(self) -> None:
        """Listen to the other nodes of the quorum, and to brokers. `OSError` when the address is taken."""
        for name, listener in self._listeners.items():
            if name in self._context.config.controller_listener_names:
                listener.open()

    def open_broker(self) -> None:
        """Listen to clients, and to brokers that follow this one. Again: nothing is done."""
        for name, listener in self._listeners.items():
            if name not in self._context.config.controller_listener_names:
                try:
                    listener.open()
                except OSError as error:
                    # Two processes can take an address before either listens.
                    self._context.fatal(ListenerFailed(name, str(error.strerror)))
                    return

    def port_of(self, listener: str) -> int | None:
        """The port a listener is bound to (it may have been asked for port 0)."""
        bound = self._listeners.get(listener)
        return None if bound is None else bound.port

    def advertised_listeners(self) -> list[tuple[str, str, int, int]]:
        """(name, host, port, security protocol id) of the broker's listeners, as it registers them.

        The one between brokers comes first: a node that is only a controller knows it by that
        (`metadata.view.endpoint_in`).
        """
        config = self._context.config
        found: list[tuple[str, str, int, int]] = []
        between = config.inter_broker_listener_name
        for endpoint in sorted(config.advertised_listeners, key=lambda each: each.name != between):
            port = endpoint.port or self.port_of(endpoint.name) or 0
            found.append((endpoint.name, endpoint.host, port, SECURITY_PROTOCOLS.index(endpoint.security_protocol)))
        return found

    # -- the end of connections

    def close_broker(self) -> None:
        """The broker is going down: close its listeners, and send what its clients have been answered."""
        controller = self._context.config.controller_listener_names
        for name, listener in list(self._listeners.items()):
            if name not in controller:
                listener.close()
                del self._listeners[name]
                self._admissions[name].remove(name)
        for connection in list(self._open):
            if connection.listener not in controller:
                connection.flush()
                connection.close()

    def close(self) -> None:
        """The node is going down."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for name, listener in self._listeners.items():
            listener.close()
            self._admissions[name].remove(name)
        for connection in list(self._open):
            connection.close()
        for admission in self.admissions:
            admission.close()

    def look_for_idle(self) -> None:
        """From now on, close connections that have been idle for `connections.max.idle.ms`; below 0 none."""
        clock = self._context.clock
        patience_ms = self._context.config.connections_max_idle_ms
        if patience_ms < 0:
            return
        patience_ms = max(patience_ms, 1)
        times = -(-patience_ms // _IDLE_CHECK_MS)
        interval_ms = -(-patience_ms // times)

        def look() -> None:
            now_ms = clock.now_ms()
            for connection in list(self._open):
                if connection.active or connection.slots:
                    connection.active = False
                    connection.idle_since_ms = now_ms
                elif now_ms - connection.idle_since_ms >= patience_ms:
                    connection.close()
            self._idle_timer = clock.call_at(now_ms + interval_ms, look)

        self._idle_timer = clock.call_at(clock.now_ms() + interval_ms, look)

    def connection_closed(self, connection: ClientConnection) -> None:
        """A connection has ended, by either side."""
        if connection in self._open:
            del self._open[connection]
            self._admissions[connection.listener].closed(connection)
        if connection.broker_identity is not None and not self._context.stopping:
            self._broker_lost(*connection.broker_identity)

    def flush_later(self, connection: ClientConnection) -> None:
        """A client that is held back has not read its answers yet: look again shortly."""
        self._context.clock.call_at(self._context.clock.now_ms() + _FLUSH_AGAIN_MS, connection.touch)

    def release_later(self, connection: ClientConnection, throttle_ms: int) -> None:
        """A client that exceeds a quota is heard again after so long."""
        self._context.clock.call_at(self._context.clock.now_ms() + throttle_ms, connection.release)

    # -- warnings

    def malformed_request(self, peer: str, why: str) -> None:
        """A connection is closed for what it sent. One line a second: a client must not fill the disk with it."""
        self._context.metrics.malformed_requests += 1
        self._malformed.emit(lambda left_out: MalformedRequest(peer, why, left_out))

    def handler_failed(self, api_key: int, error: Exception) -> None:
        """A handler has met an unexpected exception."""
        self._context.unexpected.met(f"a handler of {ApiKey(api_key).name}", error)
