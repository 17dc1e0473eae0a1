"""Any frames before authentication: nothing behind the gate is reached, nothing raises, and little is kept.

Drawn frames are requests of any key and version, with bodies that make sense or do not, tokens, and noise. A client of
them gets in only with the right password, in the right order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.broker.authentication.gate import DelayedRefusals, GuardedConnection, SaslGate, guard
from tanist.broker.network.client_connection import ClientConnection, ListenerApis
from tanist.ports import Timer
from tanist.security.sasl.outcome import Done, ServerMachine
from tanist.security.sasl.plain import PlainServer
from tanist.security.sasl.scram import SHA_256, ScramCredential, ScramServer
from tanist.security.session import Session
from tanist.wire.apis import BROKER_APIS, ApiKey, request_class
from tanist.wire.frames import encode_request
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest

PASSWORDS = {"alice": "alice-secret"}
RIGHT = b"\0alice\0alice-secret"
CREDENTIAL = ScramCredential.of_password(SHA_256, "alice-secret", b"salt", 4096)


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
    names = ("PLAIN", "SCRAM-SHA-256")
    max_receive_bytes = 512 << 10

    def begin(self, mechanism: str) -> ServerMachine:
        if mechanism == "PLAIN":
            return PlainServer(PASSWORDS.get)
        return ScramServer(SHA_256, bytes, {"alice": CREDENTIAL}.get)

    def lifetime_ms(self, mechanism: str, done: Done, wall_ms: int) -> int | None:
        return None


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


def _request(key: ApiKey, version: int) -> bytes:
    request = request_class(key)
    version = min(max(version, request.VERSIONS[0]), request.VERSIONS[1])
    return encode_request(request(), version, 1, "fuzz")[4:]


HANDSHAKES = st.builds(
    lambda mechanism, version: encode_request(SaslHandshakeRequest(mechanism=mechanism), version, 1, "fuzz")[4:],
    st.sampled_from(["PLAIN", "SCRAM-SHA-256", "GSSAPI", "", "x" * 1000]),
    st.integers(0, 1),
)
TOKENS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"", b"\0alice\0wrong", b"n,,n=alice,r=x", b"c=biws,r=x,p=AAAA", b"\0\0", b"\x01"]),
)
AUTHENTICATES = st.builds(
    lambda token, version: encode_request(SaslAuthenticateRequest(auth_bytes=token), version, 1, "fuzz")[4:],
    TOKENS,
    st.integers(0, 2),
)
REQUESTS = st.builds(_request, st.sampled_from(list(BROKER_APIS)), st.integers(0, 13))
WHOLE = REQUESTS | HANDSHAKES | AUTHENTICATES
CUT = st.builds(lambda frame, end: frame[: end % (len(frame) + 1)], WHOLE, st.integers(0))
FRAMES = st.lists(WHOLE | TOKENS | CUT, max_size=12)


@settings(max_examples=1_500, deadline=None)
@given(FRAMES)
def test_nobody_gets_in_without_the_password(frames: list[bytes]) -> None:
    bench = Bench()
    for frame in frames:
        bench.take(frame)
        assert bench.guarded
        assert bench.connection.handlers == {}
        assert (bench.connection.produce, bench.connection.fetch) == (None, None)
    assert bench.owner.authentications == 0
    assert bench.owner.failures == []
    assert str(bench.connection.session.principal) == "User:ANONYMOUS"
    assert bench.wire.max_frame_bytes == 512 << 10
    assert sum(len(chunk) for chunk in bench.connection.out if isinstance(chunk, bytes)) < 20_000, (
        "little is kept for a client that may be anybody"
    )


@settings(max_examples=300, deadline=None)
@given(FRAMES, st.integers(0, 2))
def test_another_client_gets_in_beside_it(frames: list[bytes], version: int) -> None:
    bench = Bench()
    for frame in frames:
        bench.take(frame)
    fresh = Bench()
    fresh.take(encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "fuzz")[4:])
    fresh.take(encode_request(SaslAuthenticateRequest(auth_bytes=RIGHT), version, 2, "fuzz")[4:])
    assert not fresh.guarded
    assert str(fresh.connection.session.principal) == "User:alice"
    assert fresh.wire.max_frame_bytes == 100 << 20
    assert bench.guarded
