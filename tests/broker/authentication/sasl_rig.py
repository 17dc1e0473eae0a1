"""Properties of nodes with SASL, clients' logins, and a client that sends what it wants."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from tanist.broker.logins import ChannelLogin
from tanist.ports import Connection
from tanist.security.jaas import PLAIN_MODULE, SCRAM_MODULE
from tanist.security.sasl.client import Credentials
from tanist.sim.world.clock import SimClock
from tanist.sim.world.scheduler import Process
from tanist.sim.world.world import BROKER_PORT
from tanist.wire.frames import decode_response, encode_request
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tanist.wire.schema import Request
from tests.broker.cluster_rig import Cluster

_BOTH = "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
PLAIN_JAAS = (
    f'{PLAIN_MODULE} required username="node" password="node-secret" user_node="node-secret" user_alice="alice-secret";'
)
SCRAM_JAAS = f'{SCRAM_MODULE} required username="node" password="node-secret";'

SASL_EVERYWHERE: Mapping[str, str] = {
    "listener.security.protocol.map": _BOTH,
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    **{
        f"listener.name.{name}.{mechanism}.sasl.jaas.config": jaas
        for name in ("plaintext", "controller")
        for mechanism, jaas in (("plain", PLAIN_JAAS), ("scram-sha-256", SCRAM_JAAS), ("scram-sha-512", SCRAM_JAAS))
    },
}
"""Brokers and controllers authenticate to each other by PLAIN."""

_numbers = itertools.count(1)


def seeded(count: int) -> bytes:
    """Bytes that nobody needs to foresee here: another row at each call, the same in each run of a test."""
    return hashlib.shake_256(str(next(_numbers)).encode()).digest(count)


def login(mechanism: str, user: str, password: str, **options: str) -> ChannelLogin:
    """A client's. What it hears of a failure goes to `failures_of`."""
    failures: list[str] = []
    credentials = Credentials(mechanism, {"username": user, "password": password, **options}, seeded)
    made = ChannelLogin(credentials, 5_000, lambda host, port, why: failures.append(why))
    _FAILURES[id(made)] = failures
    return made


def failures_of(made: ChannelLogin) -> list[str]:
    """Why its authentications have failed."""
    return _FAILURES[id(made)]


_FAILURES: dict[int, list[str]] = {}


class RawClient:
    """A connection to a node of a simulated cluster, over which a test sends any bytes."""

    def __init__(self, cluster: Cluster, *, to: int = 1, port: int = BROKER_PORT) -> None:
        self.cluster = cluster
        name = f"raw-{len(cluster.world.clients)}"
        cluster.world.clients.append(name)
        self._process = Process(name)
        self._clock = SimClock(cluster.world.scheduler, self._process)
        self._network = cluster.world.network.view(name, self._process)
        self._correlation_id = 0
        self.frames: list[bytes] = []
        self.closed: str | None = None
        self._run(lambda: self._connect((cluster.host(to).name, port)))

    def _connect(self, address: tuple[str, int]) -> None:
        self.connection = self._network.connect(*address, self, max_frame_bytes=1 << 20)

    def _run(self, callback: Callable[[], None]) -> None:
        self.cluster.world.scheduler.after(0, callback, self._process)
        self.cluster.run(0)

    def on_open(self, connection: Connection) -> None: ...

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))

    def on_close(self, reason: str) -> None:
        self.closed = reason

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    def send(self, frame: bytes) -> None:
        """A frame without its length."""
        self._run(lambda: self.connection.send([len(frame).to_bytes(4, "big"), frame]))

    def raw(self, frame: bytes) -> bytes | None:
        """The frame that answers; None if the connection ends instead."""
        before = len(self.frames)
        self.send(frame)
        self.cluster.until(lambda: len(self.frames) > before or self.closed is not None)
        return self.frames[-1] if len(self.frames) > before else None

    def ask(self, request: Request, version: int) -> Any:
        """The response; None if the connection ends instead."""
        self._correlation_id += 1
        answer = self.raw(encode_request(request, version, self._correlation_id, "raw")[4:])
        return None if answer is None else decode_response(request.API_KEY, version, memoryview(answer))

    def ends(self) -> bool:
        """Wait for the end of the connection."""
        self.cluster.until(lambda: self.closed is not None)
        return True

    def log_in(self, mechanism: str = "PLAIN", token: bytes = b"\0alice\0alice-secret", version: int = 2) -> Any:
        """Authenticate by one token; the last answer."""
        assert self.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
