"""Faulty links of a running node: a proxy in its own process, between a connection and its socket.

While a link has a fault, each connection on it gets one end of a socket pair in place of its socket (`Relay`). The
bytes of both sides pass through two pipes (`faults.pipe`), which hold them back, delay them or slow them down. When the
link is healed and the pipes have run dry, the connection gets its own socket back. So a node runs the same code as
without a fault, at the same cost: without a fault nothing here is even imported.

Which peer has the connection? A connection that this node dials is known by the port that it dials. The dialling end
applies the faults of both directions, for the other end cannot tell who dials it: node 1 holds back the bytes from node
2 on the connections that node 1 has dialled, and node 2 does so on those that node 2 has dialled. Accepted connections
are clients' unless a node has claimed them: when links to clients have a fault, nodes leave the ports that they dial
from in the folder `claims` of the node that they dial. Until a connection is claimed it is taken for a client's.

It must never let a byte of a cut link pass, or lose one of a connection that lives on.
"""

from __future__ import annotations

import random
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tanist.runtime.faults.pipe import Pipe
from tanist.runtime.faults.settings import CLEAR, CLIENTS, FaultSet, LinkState
from tanist.runtime.ports.descriptors import opening
from tanist.runtime.ports.loop import HeapTimer, Loop

if TYPE_CHECKING:
    from tanist.runtime.ports.connection import SocketConnection
    from tanist.runtime.ports.network import SocketNetwork
    from tanist.runtime.ports.socket_address import SocketAddress

_LEAVE_MS = 20
"""How often a healed connection is asked whether it has read everything, so that it can have its socket back."""
_CLAIMS_POLL_MS = 50
_CLAIM_LIFE_MS = 5_000
"""A claim may come before the connection that it is about."""
_CLAIMS_MAX = 10_000

LinkStates = tuple[LinkState, LinkState]
_AS_IT_SHOULD_BE: LinkStates = (CLEAR, CLEAR)


class LinkFaults:
    """All links of one node. `SocketNetwork.faults` while any of them has a fault."""

    def __init__(self, loop: Loop, network: SocketNetwork, node_id: int, folder: Path) -> None:
        self._loop = loop
        self._network = network
        self._node_id = node_id
        self._folder = folder
        self._links: dict[int, LinkStates] = {}
        self._node_of_port: dict[int, int] = {}
        self._claimed_from: frozenset[int] = frozenset()
        """Nodes that must know which connections are ours."""
        self._relays: dict[SocketConnection, Relay] = {}
        self._dialling: dict[SocketConnection, tuple[list[SocketAddress], HeapTimer]] = {}
        """Connections whose first packet is lost, or late."""
        self._known: set[SocketConnection] = set()
        """Accepted connections that nodes have claimed."""
        self._claims: dict[int, int] = {}
        """Ports that were claimed, and no such connection was there yet -> until when."""
        self._claims_timer: HeapTimer | None = None

    def apply(self, faults: FaultSet) -> None:
        """Make the links as they are to be now: those of connections that are open, and of all to come."""
        self._links = faults.links(self._node_id)
        self._node_of_port = {port: node_id for node_id, ports in (faults.ports or {}).items() for port in ports}
        self._claimed_from = faults.nodes_apart_from_clients()
        self._network.faults = self
        self._tend_claims()
        for connection in self._network.connections:
            if connection.is_open:
                self._claim(connection)
                self._apply(connection)
        for connection, relay in list(self._relays.items()):
            if not connection.is_open:  # closed by the node, while what it had sent is still on its way
                relay.set_states(self._states(connection))
        for connection, (addresses, timer) in list(self._dialling.items()):
            timer.cancel()
            del self._dialling[connection]
            connection.start_connecting(addresses)
        self._retire()

    # -- what the network asks

    def delays(self, connection: SocketConnection, addresses: list[SocketAddress]) -> bool:
        """Whether a connection may not be dialled yet. Its first packet is lost, or late."""
        forth, back = self._states(connection)
        if forth.cut or back.cut:
            patience_ms = self._network.connect_timeout_ms
            self._dial_later(connection, addresses, patience_ms, lambda: connection.end(_no_answer(patience_ms)))
            return True
        late_ms = forth.latency_ms + back.latency_ms
        if late_ms and connection not in self._dialling:
            self._dial_later(connection, addresses, late_ms, lambda: connection.start_connecting(addresses))
            return True
        self._dialling.pop(connection, None)
        return False

    def opened(self, connection: SocketConnection) -> None:
        """A connection was accepted, or its dialling has succeeded."""
        if connection.accepted and self._claims.pop(connection.peer_port, None) is not None:
            self._known.add(connection)
        self._claim(connection)
        self._apply(connection, new=True)

    # -- inner

    def _dial_later(
        self, connection: SocketConnection, addresses: list[SocketAddress], delay_ms: int, then: Callable[[], None]
    ) -> None:
        def due() -> None:
            then()
            self._dialling.pop(connection, None)
            self._retire()

        self._dialling[connection] = (addresses, self._loop.call_at(self._loop.now_ms() + delay_ms, due))

    def _states(self, connection: SocketConnection) -> LinkStates:
        if not connection.accepted:
            peer = self._node_of_port.get(connection.peer_port)
        elif connection in self._known:
            peer = None  # the node that dialled it sees to both directions
        else:
            peer = CLIENTS
        return _AS_IT_SHOULD_BE if peer is None else self._links.get(peer, _AS_IT_SHOULD_BE)

    def _apply(self, connection: SocketConnection, *, new: bool = False) -> None:
        states = self._states(connection)
        relay = self._relays.get(connection)
        if relay is None:
            if states == _AS_IT_SHOULD_BE:
                return
            unheard = new and connection.accepted and states[1].cut
            relay = self._relays[connection] = Relay(self._loop, connection, self._gone, unheard=unheard)
        relay.set_states(states)

    def _gone(self, connection: SocketConnection) -> None:
        del self._relays[connection]
        self._retire()

    def _retire(self) -> None:
        """Leave the network as it was before, once there is nothing left to do."""
        if not (self._links or self._claimed_from or self._relays or self._dialling) and self._network.faults is self:
            self._network.faults = None

    # -- claims

    def _claim(self, connection: SocketConnection) -> None:
        """Show the node at the other end, if it has to know, that this connection is a node's."""
        if connection.accepted or not self._claimed_from:
            return
        peer = self._node_of_port.get(connection.peer_port)
        if peer in self._claimed_from:
            relay = self._relays.get(connection)
            port = connection.local_port if relay is None else relay.local_port
            claims = self._claims_of(peer)
            claims.mkdir(mode=0o700, exist_ok=True)
            (claims / str(port)).touch(mode=0o600)

    def _claims_of(self, node_id: int) -> Path:
        return self._folder / f"claims-{node_id}"

    def _tend_claims(self) -> None:
        """Look for claims while this node has to tell clients from nodes, and only then."""
        mine = self._node_id in self._claimed_from
        if mine and self._claims_timer is None:
            self._claims_timer = self._loop.call_at(self._loop.now_ms() + _CLAIMS_POLL_MS, self._read_claims)
        elif not mine and self._claims_timer is not None:
            self._claims_timer.cancel()
            self._claims_timer = None
            self._claims.clear()
            self._known.clear()
            shutil.rmtree(self._claims_of(self._node_id), ignore_errors=True)

    def _read_claims(self) -> None:
        now_ms = self._loop.now_ms()
        self._claims_timer = self._loop.call_at(now_ms + _CLAIMS_POLL_MS, self._read_claims)
        self._known &= self._network.connections
        self._claims = {port: until_ms for port, until_ms in self._claims.items() if until_ms > now_ms}
        try:
            found = opening(lambda: list(self._claims_of(self._node_id).iterdir()))
        except FileNotFoundError:
            return
        for path in found[:_CLAIMS_MAX]:
            path.unlink(missing_ok=True)
            if path.name.isdecimal():
                self._claims[int(path.name)] = now_ms + _CLAIM_LIFE_MS
        if self._claims:
            for connection in self._network.connections:
                if connection.accepted and self._claims.pop(connection.peer_port, None) is not None:
                    self._known.add(connection)
                    self._apply(connection)


class Relay:
    """The proxy of one connection."""

    def __init__(
        self, loop: Loop, connection: SocketConnection, gone: Callable[[SocketConnection], None], *, unheard: bool
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._gone = gone
        self._ours, self._nodes = socket.socketpair()
        self._ours.setblocking(False)
        self._nodes.setblocking(False)
        self._real = connection.swap_socket(self._nodes)
        self.local_port: int = self._real.getsockname()[1]
        self._leave_timer: HeapTimer | None = None
        self._closed = False
        rng = random.Random()
        self._out = Pipe(loop, self._ours, self._real, self._out_ended, rng)
        self._back = Pipe(loop, self._real, self._ours, self._back_ended, rng, unheard=unheard)

    def set_states(self, states: LinkStates) -> None:
        self._out.set_state(states[0])
        if not self._closed:
            self._back.set_state(states[1])
        if states == _AS_IT_SHOULD_BE:
            self._leave()

    def _out_ended(self, reason: str) -> None:
        """The node has closed its connection, and all that it had sent before is on its way."""
        del reason
        self._close()

    def _back_ended(self, reason: str) -> None:
        if self._back.unheard:
            # A client that gave up before any byte of it had come through: the node has never heard of it.
            self._connection.end("closed by the other side")
            self._close()
        elif reason:
            self._connection.end(reason)
        else:
            with suppress(OSError):  # (the node may have closed it at the same time)
                self._ours.shutdown(socket.SHUT_WR)  # the node reads the end, and closes

    def _leave(self) -> None:
        """Give the connection its own socket back, once the pipes hold no byte of it."""
        self._leave_timer = None
        if self._closed or not self._connection.is_open:
            return  # its end is on its way to us
        if not (self._out.is_clear and self._back.is_clear):
            return
        if self._out.run_dry() and self._back.run_dry() and _is_empty(self._nodes):
            self._out.stop()
            self._back.stop()
            self._connection.swap_socket(self._real)
            self._finish()
        elif self._leave_timer is None and not self._closed:
            self._leave_timer = self._loop.call_at(self._loop.now_ms() + _LEAVE_MS, self._leave)

    def _close(self) -> None:
        if not self._closed:
            self._out.stop()
            self._back.stop()
            self._real.close()
            self._finish()

    def _finish(self) -> None:
        self._closed = True
        if self._leave_timer is not None:
            self._leave_timer.cancel()
            self._leave_timer = None
        self._ours.close()
        self._nodes.close()
        self._gone(self._connection)


def _is_empty(sock: socket.socket) -> bool:
    """Whether nothing waits to be read."""
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _no_answer(patience_ms: int) -> str:
    return f"no answer within {patience_ms} ms"
