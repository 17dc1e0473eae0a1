"""The `Network` port in virtual time: listeners, links, latency, and faults.

Owns the links and listeners; one connection is two `SimConnection`s (`connection.py`). The faults:

* `block` closes a link in one direction. Bytes sent over it wait to be sent again, and arrive some time after the link
  has healed (TCP waits longer with each attempt), unless the sender has given up by then; a sender without
  acknowledgements gives up too. First packets and resets are lost.
* A lossy link loses random packets: each is sent again after a while, and later bytes wait for it.
* `reset_near` breaks a connection at one end while bytes are under way: the other end still reads them, perhaps after
  those of the connection that replaced it.
* The operating system of a killed process keeps its sockets: sent bytes still go out, then the connection ends, with a
  reset if there are unread bytes.
* A machine that loses power sends nothing. When it is back it resets old connections as soon as a packet arrives, so a
  connection without packets from the other side stays half open.
* The kernel of a frozen process continues: it accepts connections, and receives as much as fits.
* Receive buffers of a few bytes take an answer piece by piece, and what is half sent may stall while its log changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from tanist.ports import Connection, ConnectionHandler, TlsIdentity
from tanist.sim.world.connection import SimConnection
from tanist.sim.world.error_numbers import EADDRINUSE
from tanist.sim.world.link_conditions import NetworkConditions
from tanist.sim.world.scheduler import Process, Scheduler
from tanist.sim.world.tls import Certificates

_EPHEMERAL = 40_000


class SimNetwork:
    """All links and listeners of the world."""

    def __init__(self, scheduler: Scheduler, rng: random.Random, conditions: NetworkConditions | None = None) -> None:
        self.scheduler = scheduler
        self.rng = rng
        self.conditions = conditions or NetworkConditions()
        self.fingerprint = 0
        """Over all sent bytes and their times."""
        self.readers: list[Callable[[SimConnection, memoryview], None]] = []
        """Called with each frame when it is read at this end, before the process. They must keep nothing of the
        memory."""
        self.on_torn: Callable[[str, str], None] | None = None
        """Called with the host and the path when what is sent of a file is not what was handed over."""
        self.certificates = Certificates()
        self.listeners: dict[tuple[str, int], SimListener] = {}
        self.connections: dict[int, SimConnection] = {}
        """Ends that are not gone yet, in order of creation."""
        self._blocked: dict[tuple[str, str], int] = {}
        """(from host, to host) -> since when."""
        self._healed_us: dict[tuple[str, str], int] = {}
        """(from host, to host) -> when it was last opened again."""
        self._dark: dict[str, int] = {}
        self._last_id = 0
        self._last_port = _EPHEMERAL

    # -- faults

    def block(self, source: str, target: str) -> None:
        """Block the link from `source` to `target`. One direction only."""
        self._blocked.setdefault((source, target), self.scheduler.now_us)

    def heal(self, source: str | None = None, target: str | None = None) -> None:
        """Open one direction, or all; delayed bytes arrive in a while."""
        if source is None or target is None:
            healed, self._blocked = self._blocked, {}
        else:
            since_us = self._blocked.pop((source, target), None)
            healed = {} if since_us is None else {(source, target): since_us}
        for (one, other), since_us in healed.items():
            self._healed_us[(one, other)] = self.scheduler.now_us
            for end in list(self.connections.values()):
                if (end.host, end.peer_host) in ((one, other), (other, one)):
                    end.link_healed(self.scheduler.now_us - since_us)

    def blocked(self, source: str, target: str) -> bool:
        return bool(self._blocked or self._dark) and (
            (source, target) in self._blocked or source in self._dark or target in self._dark
        )

    def blocked_links(self) -> Iterable[tuple[str, str]]:
        """(from host, to host), in the order in which they were blocked."""
        return self._blocked.keys()

    def was_troubled(self, one: str, other: str, since_us: int) -> bool:
        """Whether a request between the two may have stayed without an answer since then."""
        return any(
            self.blocked(source, target)
            or self._healed_us.get((source, target), -1) >= since_us
            or (source, target) in self.conditions.lossy_links
            for source, target in ((one, other), (other, one))
        )

    def is_dark(self, host: str) -> bool:
        return host in self._dark

    def killed(self, process: Process) -> None:
        """A process has died; its operating system closes what it had open."""
        self._close_listeners(process)
        for end in list(self.connections.values()):
            if end.process is process:
                end.orphaned()

    def lost_power(self, host: str, process: Process | None) -> None:
        """A machine has lost power: its peers get no packet."""
        self._dark[host] = self.scheduler.now_us
        if process is not None:
            self._close_listeners(process)
        for end in list(self.connections.values()):
            if end.host == host:
                end.vanish()

    def got_power(self, host: str) -> None:
        """The machine is back without its old connections: it resets them when a packet arrives."""
        since_us = self._dark.pop(host, None)
        if since_us is not None:
            for end in list(self.connections.values()):
                if end.peer_host == host:
                    end.link_healed(self.scheduler.now_us - since_us)

    def reset_some(self, host: str, other: str) -> None:
        """Break the connections between two hosts, as a middlebox might."""
        for end in list(self.connections.values()):
            if (end.host, end.peer_host) in ((host, other), (other, host)):
                end.was_reset("connection reset by peer")

    def reset_near(self, near: str, far: str) -> None:
        """Break them at one end only: its sent bytes still arrive at the other, which gets no reset."""
        for end in list(self.connections.values()):
            if (end.host, end.peer_host) == (near, far):
                end.was_reset("connection reset by peer")

    def log_changed(self, host: str) -> None:
        """A log of the host has been truncated, rolled, compacted or deleted, perhaps under what is half sent."""
        if self.conditions.stall_us:
            for end in list(self.connections.values()):
                if end.host == host:
                    end.stall(int(self.rng.random() * self.conditions.stall_us))

    # -- for the ports

    def view(self, host: str, process: Process) -> SimNetworkView:
        """The `Network` port of one process on `host`."""
        return SimNetworkView(self, host, process)

    def latency_us(self, source: str, target: str, size_bytes: int) -> int:
        conditions = self.conditions
        low_us, high_us = conditions.latency_us
        latency_us = low_us + int(self.rng.random() * (high_us - low_us + 1)) + size_bytes // conditions.bytes_per_us
        if conditions.slow_links:
            latency_us += conditions.slow_links.get((source, target), 0)
        if conditions.lossy_links:
            latency_us += self._lost_us(conditions.lossy_links.get((source, target), 0.0))
        return latency_us

    def _lost_us(self, loss: float) -> int:
        """The delay until a packet gets through."""
        resend_us, late_us = self.conditions.resend_us, 0
        while self.rng.random() < loss and late_us < self.conditions.give_up_us:
            late_us += resend_us
            resend_us *= 2
        return late_us

    def listener(self, host: str, port: int) -> SimListener | None:
        """The listener at an address, if it listens."""
        found = self.listeners.get((host, port))
        return found if found is not None and found.listens else None

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def free_port(self) -> int:
        self._last_port += 1
        return self._last_port

    def _close_listeners(self, process: Process) -> None:
        for listener in list(self.listeners.values()):
            if listener.process is process:
                listener.close()


class SimListener:
    """A bound socket."""

    def __init__(
        self,
        network: SimNetwork,
        process: Process,
        host: str,
        port: int,
        accept: Callable[[Connection], ConnectionHandler],
        max_frame_bytes: int,
        tls: str | None,
    ) -> None:
        self._network = network
        self.process = process
        self.host = host
        self.port = port
        self.accept = accept
        self.max_frame_bytes = max_frame_bytes
        self.tls = tls
        self.listens = False
        self.closed = False
        self.paused = False
        self.waiting: list[Callable[[], None]] = []

    def open(self) -> None:
        self.listens = True

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        if self.paused:
            self.paused = False
            self._accept_waiting()

    def _accept_waiting(self) -> None:
        waiting, self.waiting = self.waiting, []
        for accept in waiting:
            self._network.scheduler.after(0, accept, self.process)

    def close(self) -> None:
        self.closed = True
        self._accept_waiting()
        key = (self.host, self.port)
        if self._network.listeners.get(key) is self:
            del self._network.listeners[key]


class SimNetworkView:
    """`ports.Network` of one process."""

    def __init__(self, network: SimNetwork, host: str, process: Process) -> None:
        self._network = network
        self._host = host
        self._process = process

    def bind(
        self,
        host: str,
        port: int,
        accept: Callable[[Connection], ConnectionHandler],
        *,
        max_frame_bytes: int,
        tls: str | None = None,
    ) -> SimListener:
        network = self._network
        self._check_profile(tls)
        address = host or self._host
        if port == 0:
            port = network.free_port()
        if (address, port) in network.listeners:
            raise OSError(EADDRINUSE, f"address {address}:{port} is in use")
        listener = SimListener(network, self._process, address, port, accept, max_frame_bytes, tls)
        network.listeners[(address, port)] = listener
        return listener

    def connect(
        self, host: str, port: int, handler: ConnectionHandler, *, max_frame_bytes: int, tls: str | None = None
    ) -> Connection:
        network = self._network
        self._check_profile(tls)
        end = SimConnection(network, self._host, host, self._process, f"{host}:{port}", max_frame_bytes)
        end.handler = handler
        end.tls = tls
        end.dial(port)
        return end

    def set_tls_profile(
        self, name: str, properties: Mapping[str, str], *, between_nodes: bool, only_try: bool = False
    ) -> TlsIdentity | None:
        return self._network.certificates.set(self._host, name, properties, only_try=only_try)

    def _check_profile(self, tls: str | None) -> None:
        if tls is not None and not self._network.certificates.known(self._host, tls):
            raise ValueError(f"there is no TLS profile {tls}")
