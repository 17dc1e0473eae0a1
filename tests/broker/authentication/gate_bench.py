"""A connection behind its gate, with nothing else of a node: what fuzz tests send frames to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tanist.broker.authentication.gate import DelayedRefusals, GuardedConnection, SaslGate, guard
from tanist.broker.network.client_connection import ClientConnection, ListenerApis
from tanist.ports import Timer
from tanist.security.sasl.oauthbearer import InvalidToken, OAuthBearerServer, TokenRules
from tanist.security.sasl.outcome import Done, ServerMachine
from tanist.security.sasl.plain import PlainServer
from tanist.security.sasl.scram import SHA_256, ScramCredential, ScramServer
from tanist.security.session import Session
from tanist.wire.apis import BROKER_APIS, ApiKey

MAX_FRAME_BYTES = 512 << 10
"""Before authentication."""
PASSWORDS = {"alice": "alice-secret"}
RIGHT = b"\0alice\0alice-secret"
CREDENTIAL = ScramCredential.of_password(SHA_256, "alice-secret", b"salt", 4096)
BEARER = "a.good.token"


class Reached(AssertionError):
    """A handler behind the gate was called."""


class Clock:
    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        return 0

    wall_ms = now_ns = now_ms

    def call_at(self, when_ms: int, callback: Callable[[], None]) -> Timer:
        self.due.append(callback)
        return _Cancelled()

    def call_soon(self, callback: Callable[[], None]) -> None:
        callback()


class _Cancelled:
    def cancel(self) -> None: ...


class Wire:
    peer = "client:1"
    pending_bytes = 0

    def __init__(self) -> None:
        self.sent = 0
        self.closed = False
        self.reading = True
        self.max_frame_bytes = 0

    def send(self, chunks: Sequence[Any]) -> None:
        self.sent += sum(map(len, chunks))

    def set_max_frame_bytes(self, size: int) -> None:
        self.max_frame_bytes = size

    def pause(self) -> None:
        self.reading = False

    def resume(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True


class Owner:
    """What the connection and its gate report to."""

    def __init__(self) -> None:
        self.requests: dict[int, int] = {}
        self.authentications = 0
        self.failures: list[Exception] = []

    def malformed_request(self, peer: str, why: str) -> None: ...

    def handler_failed(self, api_key: int, error: Exception) -> None:
        self.failures.append(error)

    def flush_later(self, connection: ClientConnection) -> None: ...

    def connection_closed(self, connection: ClientConnection) -> None: ...

    def authenticated(self, session: Session) -> None:
        self.authentications += 1

    def refused(self, session: Session, peer: str, mechanism: str, reason: str) -> None: ...

    def expired(self, session: Session) -> None: ...


class Mechanisms:
    """Three, and alice. SCRAM's nonce is the same each time, so that a dialogue can be written down."""

    names = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER")
    max_receive_bytes = MAX_FRAME_BYTES

    def begin(self, mechanism: str) -> ServerMachine:
        if mechanism == "PLAIN":
            return PlainServer(PASSWORDS.get)
        if mechanism == "OAUTHBEARER":
            return OAuthBearerServer(_verified, TokenRules(), lambda: 0)
        return ScramServer(SHA_256, bytes, {"alice": CREDENTIAL}.get)

    def lifetime_ms(self, mechanism: str, done: Done, wall_ms: int) -> int | None:
        return None


def _verified(bearer: str) -> dict[str, object]:
    if bearer != BEARER:
        raise InvalidToken("nobody has signed it")
    return {"sub": "alice", "iat": 0, "exp": 1_000_000}


def _reached(*_: Any) -> None:
    raise Reached


class Bench:
    def __init__(self) -> None:
        self.owner, self.wire, clock = Owner(), Wire(), Clock()
        handlers: dict[int, Any] = {int(key): (low, high, _reached) for key, (low, high) in BROKER_APIS.items()}
        handlers[ApiKey.API_VERSIONS] = (0, 4, lambda request, call: call.reply_chunks([b"versions"]))
        apis = ListenerApis(handlers, lambda call: call.reply_chunks([b"newer"]), _reached, _reached)
        owner: Any = self.owner
        wire: Any = self.wire
        disk: Any = None
        mechanisms: Any = Mechanisms()
        self.connection = ClientConnection(
            owner, lambda _: None, wire, Session("CLIENTS", "SASL_PLAINTEXT", "1.2.3.4"), apis
        )
        gate = SaslGate(
            self.connection, mechanisms, DelayedRefusals(clock, 100), clock, disk, self.owner, apis, 100 << 20
        )
        guard(self.connection, gate, mechanisms.max_receive_bytes)

    @property
    def guarded(self) -> bool:
        return type(self.connection) is GuardedConnection

    def take(self, frame: bytes) -> None:
        if not self.connection.closed and self.wire.reading:
            self.connection.on_frame(memoryview(bytearray(frame)))
