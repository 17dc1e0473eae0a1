"""The real `Network` port: listening, connecting, limits. `connection.py` has the traffic of one connection.

It owns the set of connections and their number: at most `max_connections` accepted ones (more wait in the kernel's
backlog until one closes), and when the process runs out of file descriptors
accepting rests for a while instead of spinning. It must never block: names are looked up in a thread, connects are
non-blocking.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tanist.ports import Connection, ConnectionHandler, TlsIdentity
from tanist.runtime.ports.bulk import Bulk
from tanist.runtime.ports.cold_ranges import ColdReads
from tanist.runtime.ports.connection import ConnectionFaults, SocketConnection
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.socket_address import SocketAddress

if TYPE_CHECKING:
    from tanist.runtime.ports.tls_side import Tls, TlsReports

_ACCEPTS_PER_TURN = 64
_BACKLOG = 512
_ACCEPT_REST_MS = 500
"""How long accepting rests when the process or the system is out of descriptors or memory."""

CONNECT_TIMEOUT_MS = 10_000
"""Kafka's `socket.connection.setup.timeout.ms`: how long one address is given to answer."""

SYSTEM_DEFAULT = -1
"""For the size of a socket's buffer: whatever the kernel thinks right, as it goes."""


class SocketListener:
    """One bound socket."""

    def __init__(
        self,
        network: SocketNetwork,
        sock: socket.socket,
        accept: Callable[[Connection], ConnectionHandler],
        max_frame_bytes: int,
        tls: str | None,
    ) -> None:
        self._network = network
        self._sock = sock
        self._accept = accept
        self._max_frame_bytes = max_frame_bytes
        self._tls = tls
        self._port: int = sock.getsockname()[1]
        self._listens = False
        self._reading = False
        self._paused = False
        self._closed = False
        self._waiting: deque[SocketConnection] = deque()
        """Connections whose handshakes were done while it was paused."""

    @property
    def port(self) -> int:
        return self._port

    def open(self) -> None:
        if not self._listens and not self._closed:
            try:
                self._sock.listen(_BACKLOG)
            except OSError as error:
                raise OSError(error.errno, f"cannot listen on port {self._port}: {error.strerror}") from None
            self._listens = True
            self.watch()

    def pause(self) -> None:
        self._paused = True
        self.rest()

    def resume(self) -> None:
        self._paused = False
        if self._waiting:
            self._network.loop.post(self._take_waiting)
        elif not self._network.resting:
            self.watch()

    def take(self, connection: SocketConnection) -> None:
        """It is open, and has shown who it is if it was asked to."""
        if self._paused:
            connection.pause()
            self._waiting.append(connection)
        else:
            self._network._take(connection, self._accept)

    def _take_waiting(self) -> None:
        while self._waiting and not self._paused:
            connection = self._waiting.popleft()
            if connection in self._network._connections:
                connection.resume()
                self._network._take(connection, self._accept)
        if not self._network.resting:
            self.watch()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.rest()
        self._sock.close()
        while self._waiting:
            self._waiting.popleft().end("its listener was closed")
        self._network._listeners.discard(self)

    def watch(self) -> None:
        """Accept again."""
        if self._listens and not self._reading and not self._paused and not self._closed:
            self._reading = True
            self._network.loop.aio.add_reader(self._sock.fileno(), self._on_readable)

    def rest(self) -> None:
        """Leave new connections in the kernel's backlog."""
        if self._reading:
            self._reading = False
            self._network.loop.aio.remove_reader(self._sock.fileno())

    def _on_readable(self) -> None:
        network = self._network
        for _ in range(_ACCEPTS_PER_TURN):
            if self._closed or self._paused:
                return
            if network.accepted >= network.max_connections:
                network._rest_listeners("the limit of connections is reached", retry=False)
                return
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # gone before we came to it
            except OSError as error:
                # No descriptor or memory is left; or an error waited on the new connection, or a rule of a firewall
                # keeps it out, and others may come through.
                network._rest_listeners(error.strerror or str(error), retry=True)
                return
            network._adopt(sock, address, self, self._max_frame_bytes, self._tls)


class SocketNetwork:
    """The `Network` port on raw, non-blocking TCP sockets."""

    def __init__(
        self,
        loop: Loop,
        *,
        max_connections: int = 65_536,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
        send_buffer_bytes: int = SYSTEM_DEFAULT,
        receive_buffer_bytes: int = SYSTEM_DEFAULT,
        on_exhausted: Callable[[int, str], None] | None = None,
        tls_reports: TlsReports | None = None,
    ) -> None:
        self.loop = loop
        self.bulk = Bulk(loop)
        self.cold_reads = ColdReads(loop)
        self.max_connections = max_connections
        self.connect_timeout_ms = connect_timeout_ms
        self._send_buffer_bytes = send_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes
        self.sweep_ms = 2_000
        """How often receive buffers that have grown are looked at."""
        self.accepted = 0
        """Connections accepted and not yet closed."""
        self.faults: ConnectionFaults | None = None
        """While links have faults: asked about each connection when it is dialled and when it is open, never later."""
        self.wrap_accepted: Callable[[SocketConnection, ConnectionHandler], ConnectionHandler] | None = None
        """While requests have faults: puts another handler around that of each connection that is accepted."""
        self._on_exhausted = on_exhausted
        self._connections: set[SocketConnection] = set()
        self._listeners: set[SocketListener] = set()
        self.resting = False
        """No listener accepts for now: connections, descriptors or memory have run out."""
        self._grown: set[SocketConnection] = set()
        self._sweeping = False
        self._tls_reports = tls_reports
        self._tls: Tls | None = None
        """Once there is a profile."""

    # -- Network

    def bind(
        self,
        host: str,
        port: int,
        accept: Callable[[Connection], ConnectionHandler],
        *,
        max_frame_bytes: int,
        tls: str | None = None,
    ) -> SocketListener:
        if tls is not None:
            self._tls_of(tls)
        sock = _bound(host, port)
        try:
            sock.setblocking(False)
            if self._receive_buffer_bytes != SYSTEM_DEFAULT:
                # Before listening, as accepted sockets get it from here and settle their window with the handshake.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
            listener = SocketListener(self, sock, accept, max_frame_bytes, tls)
        except BaseException:
            sock.close()
            raise
        self._listeners.add(listener)
        return listener

    def connect(
        self, host: str, port: int, handler: ConnectionHandler, *, max_frame_bytes: int, tls: str | None = None
    ) -> SocketConnection:
        peer = f"{host}:{port}"
        if tls is None:
            connection = SocketConnection(self, peer, max_frame_bytes)
        else:
            connection = self._tls_of(tls).dialling(self, peer, max_frame_bytes, tls, host)
        connection.handler = handler
        self._connections.add(connection)
        literal = _literal(host, port)
        if literal is not None:
            self.loop.post(lambda: connection.start_connecting([literal]))
        else:
            threading.Thread(
                target=self._resolve, args=(connection, host, port), name=f"look-up-{host}", daemon=True
            ).start()
        return connection

    def set_tls_profile(
        self, name: str, properties: Mapping[str, str], *, between_nodes: bool, only_try: bool = False
    ) -> TlsIdentity | None:
        if self._tls is None:
            from tanist.runtime.ports.tls_side import Tls  # a node without TLS does not load it

            self._tls = Tls(self.loop, self._tls_reports)
        return self._tls.profiles.set(name, properties, between_nodes=between_nodes, only_try=only_try)

    # -- for the rest of runtime

    @property
    def connections(self) -> frozenset[SocketConnection]:
        """Those that are open or being dialled at present."""
        return frozenset(self._connections)

    def close(self) -> None:
        """Close every listener and connection; for the end of a process and of a test."""
        for listener in list(self._listeners):
            listener.close()
        for connection in list(self._connections):
            connection.close()
        self.cold_reads.close()
        if self._tls is not None:
            self._tls.close()

    def forget(self, connection: SocketConnection) -> None:
        """A connection has closed."""
        self._connections.discard(connection)
        self._grown.discard(connection)
        if connection.accepted:
            self.accepted -= 1
            if self.resting and self.accepted < self.max_connections:
                self._wake_listeners()

    def watch_buffer(self, connection: SocketConnection) -> None:
        """A connection's receive buffer has grown: look at it from time to time, to take back what it does not use."""
        self._grown.add(connection)
        if not self._sweeping:
            self._sweeping = True
            self.loop.call_at(self.loop.now_ms() + self.sweep_ms, self._sweep)

    # -- inner

    def _sweep(self) -> None:
        self._sweeping = False
        self._grown = {connection for connection in self._grown if connection.shrink()}
        if self._grown and not self._sweeping:
            self._sweeping = True
            self.loop.call_at(self.loop.now_ms() + self.sweep_ms, self._sweep)

    def _resolve(self, connection: SocketConnection, host: str, port: int) -> None:
        """In a thread of its own: a resolver may take its time."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses: list[SocketAddress] = sorted({(entry[0], entry[4]) for entry in found}, key=_ipv4_first)
            self.loop.post_from_thread(lambda: connection.start_connecting(addresses))
        except (OSError, UnicodeError) as error:  # the latter of a name that cannot be one
            reason = f"cannot look up {host}: {getattr(error, 'strerror', None) or error}"
            self.loop.post_from_thread(lambda: connection.end(reason))

    def _tls_of(self, profile: str) -> Tls:
        if self._tls is None or profile not in self._tls.profiles:
            raise ValueError(f"there is no TLS profile {profile}")
        return self._tls

    def _adopt(
        self,
        sock: socket.socket,
        address: Any,
        listener: SocketListener,
        max_frame_bytes: int,
        tls: str | None,
    ) -> None:
        if tls is None:
            connection = SocketConnection(self, address, max_frame_bytes)
        else:
            connection = self._tls_of(tls).accepted(self, address, max_frame_bytes, tls, listener.take)
        self._connections.add(connection)
        self.accepted += 1
        connection.accepted = True
        try:
            if self._send_buffer_bytes != SYSTEM_DEFAULT:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
            connection.open_with(sock)
        except OSError as error:
            connection.end(f"not accepted: {error.strerror or error}")  # gone already
            return
        if tls is None:
            listener.take(connection)

    def _take(self, connection: SocketConnection, accept: Callable[[Connection], ConnectionHandler]) -> None:
        """Give it its handler."""
        try:
            handler = accept(connection)
            connection.handler = handler if self.wrap_accepted is None else self.wrap_accepted(connection, handler)
        except OSError as error:
            connection.end(f"not accepted: {error.strerror or error}")
        except Exception as error:
            self.loop.failed("accept", error)
            connection.end("not accepted")

    def _rest_listeners(self, why: str, *, retry: bool) -> None:
        if not self.resting:
            self.resting = True
            if self._on_exhausted is not None:
                self._on_exhausted(self.accepted, why)
        for listener in self._listeners:
            listener.rest()
        if retry:
            self.loop.call_at(self.loop.now_ms() + _ACCEPT_REST_MS, self._wake_listeners)

    def _wake_listeners(self) -> None:
        self.resting = False
        for listener in self._listeners:
            listener.watch()


def _literal(host: str, port: int) -> SocketAddress | None:
    """The socket address if `host` is an address and needs no looking up."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return family, (host, port)
    return None


def _ipv4_first(address: SocketAddress) -> int:
    """A name such as `localhost` often has both, and most servers of it listen on IPv4: as Java's default does."""
    return 0 if address[0] == socket.AF_INET else 1


def _bound(host: str, port: int) -> socket.socket:
    """A socket bound to `host:port`; the empty host is every interface, IPv4 and (where there is any) IPv6."""
    if not host:
        if socket.has_dualstack_ipv6():
            try:
                return _bound_to(socket.AF_INET6, ("::", port), both=True)
            except OSError as error:
                if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                    raise OSError(
                        error.errno, f"cannot listen on port {port}: {os.strerror(error.errno or 0)}"
                    ) from None
        host = "0.0.0.0"
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, address = min(((entry[0], entry[4]) for entry in found), key=_ipv4_first)
    try:
        return _bound_to(family, address, both=False)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None


def _bound_to(family: int, address: Any, *, both: bool) -> socket.socket:
    """`both`: IPv4 as well, by an address of IPv6."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if both else 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock
