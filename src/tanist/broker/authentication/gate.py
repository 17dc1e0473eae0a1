"""What stands before a connection until its client has authenticated, and again when it does so anew (KIP-368).

Owns the states of Apache Kafka's SaslServerAuthenticator:

    request --ApiVersions--> handshake --SaslHandshake v1--> tokens in SaslAuthenticate --> open
       \\________________________/    \\--SaslHandshake v0--> bare tokens ____________________/

A request that is not due ends the connection: nothing but the three is ever handed on, for a guarded connection has no
other handler. When the client has authenticated, the connection becomes a plain one, whose fast path knows nothing of
this module; one whose authentication expires compares a number for each request.

The answer to a client that is refused, and the end of its connection, are held back for a while
(`connection.failed.authentication.delay.ms`), so that guesses take time. It is not read from meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Final, Protocol

from tanist.broker.authentication.listener import Mechanisms
from tanist.broker.network.call import Call
from tanist.broker.network.client_connection import ClientConnection, ListenerApis
from tanist.ports import Chunk, Clock, Disk, Timer
from tanist.security.sasl.outcome import Challenge, Done, Failed, Later, Outcome, ServerMachine, invalid_credentials
from tanist.security.session import Session
from tanist.wire.apis import ApiKey, response_class
from tanist.wire.error_responses import error_response
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.frames import RequestHeader, decode_request, encode_response, parse_request_header
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tanist.wire.messages.sasl_handshake_response import SaslHandshakeResponse
from tanist.wire.schema import Request

_AGAIN_MS: Final = 1_000
"""A client authenticates anew once in so many ms at most."""
_CLOSE_AFTER_MS: Final = 20
"""kafka-python takes no answer from a connection that it sees closed."""
_VERSIONS_MAX: Final = 10
"""A client asks so often at most for ApiVersions in a version that is not known."""
_HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE).to_bytes(2, "big")
_FIRST: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE})

Answer = Callable[[bytes, int], list[Chunk]]
"""A token for the client, and how long its session lasts (ms, 0: for ever): the frame."""


class Watcher(Protocol):
    """Who counts and logs what happens at the gates of a node (`gates.Gates`)."""

    def authenticated(self, session: Session) -> None: ...

    def refused(self, session: Session, peer: str, mechanism: str, reason: str) -> None: ...

    def expired(self, session: Session) -> None: ...


class DelayedRefusals:
    """Refusals that are held back. At most so many: of more, those that have waited longest go."""

    MAX: Final = 2_000

    def __init__(self, clock: Clock, delay_ms: int) -> None:
        self._clock = clock
        self._delay_ms = delay_ms
        self._waiting: OrderedDict[ClientConnection, tuple[list[Chunk], Timer]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: ClientConnection, answer: list[Chunk]) -> None:
        """Read no more, and after the delay answer and close."""
        connection.hold()
        if not self._delay_ms:
            self._answer(connection, answer)
            return
        if len(self._waiting) >= self.MAX:
            self._end(next(iter(self._waiting)))
        timer = self._clock.call_at(self._clock.now_ms() + self._delay_ms, partial(self._end, connection))
        self._waiting[connection] = answer, timer

    def forget(self, connection: ClientConnection) -> None:
        """It has ended."""
        entry = self._waiting.pop(connection, None)
        if entry is not None:
            entry[1].cancel()

    def _end(self, connection: ClientConnection) -> None:
        answer, timer = self._waiting.pop(connection)
        timer.cancel()
        self._answer(connection, answer)

    def _answer(self, connection: ClientConnection, answer: list[Chunk]) -> None:
        if connection.closed:
            return
        if answer:
            connection.respond(answer)
            connection.flush()
        self._clock.call_at(self._clock.now_ms() + _CLOSE_AFTER_MS, connection.close)


class _State(Enum):
    REQUEST = auto()
    """ApiVersions or SaslHandshake is due."""
    HANDSHAKE = auto()
    BARE_TOKENS = auto()
    TOKENS = auto()
    OPEN = auto()
    OTHER_MECHANISM = auto()
    """Of a client that authenticates anew by another one: it is refused with its next frame."""
    REFUSED = auto()


class SaslGate:
    """Of one connection."""

    __slots__ = (
        "_again_ms",
        "_apis",
        "_clock",
        "_connection",
        "_delayed",
        "_disk",
        "_machine",
        "_mechanism",
        "_mechanisms",
        "_open_max_frame_bytes",
        "_state",
        "_unknown_versions",
        "_wanted",
        "_watcher",
    )

    def __init__(
        self,
        connection: ClientConnection,
        mechanisms: Mechanisms,
        delayed: DelayedRefusals,
        clock: Clock,
        disk: Disk,
        watcher: Watcher,
        apis: ListenerApis,
        open_max_frame_bytes: int,
    ) -> None:
        """`apis`: what is served behind the gate. `open_max_frame_bytes`: of a frame then."""
        self._connection = connection
        self._mechanisms = mechanisms
        self._delayed = delayed
        self._clock = clock
        self._disk = disk
        self._watcher = watcher
        self._apis = apis
        self._open_max_frame_bytes = open_max_frame_bytes
        self._state = _State.REQUEST
        self._mechanism: str | None = None
        """By which the client has authenticated, once it has."""
        self._wanted = ""
        self._unknown_versions = 0
        self._machine: ServerMachine | None = None
        self._again_ms: int | None = None
        """When the client last began to authenticate anew."""

    # -- frames

    def on_frame(self, frame: memoryview) -> None:
        """One frame of a client that has not authenticated. WireError: the connection is to be closed."""
        if self._state is _State.REFUSED:
            return
        if self._state is _State.BARE_TOKENS:
            self._take(bytes(frame), lambda token, lifetime_ms: [len(token).to_bytes(4, "big"), token])
        elif self._state is _State.TOKENS:
            self._authenticate(frame)
        elif self._state is _State.OTHER_MECHANISM:
            self._refuse([], f"{self._wanted} is not the mechanism of before, {self._mechanism}")
        else:
            self._request(frame)

    def begin_again(self, frame: memoryview) -> bool:
        """A SaslHandshake of a client whose authentication expires; whether it was taken, and not too early."""
        now_ms = self._clock.now_ms()
        if self._again_ms is not None and now_ms - self._again_ms < _AGAIN_MS:
            return False
        self._again_ms = now_ms
        self._state = _State.HANDSHAKE
        guard(self._connection, self, self._mechanisms.max_receive_bytes)
        self._connection.on_frame(frame)
        return True

    def ended(self) -> None:
        """The connection has ended."""
        self._state = _State.REFUSED
        self._machine = None
        self._delayed.forget(self._connection)

    def _request(self, frame: memoryview) -> None:
        api_key = int.from_bytes(frame[:2], "big", signed=True)
        version = int.from_bytes(frame[2:4], "big", signed=True)
        if len(frame) < 10 or api_key not in _FIRST:
            raise WireError(f"Unexpected Kafka request of type {api_key} during SASL handshake.")
        if api_key == ApiKey.API_VERSIONS:
            if self._state is not _State.REQUEST:
                raise WireError("Unexpected ApiVersions request received during SASL authentication")
            low, high, handle = self._apis.handlers[ApiKey.API_VERSIONS]
            if not low <= version <= high:
                self._unknown_versions += 1
                if self._unknown_versions > _VERSIONS_MAX:
                    raise WireError("ApiVersions in too many versions")
                correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
                header = RequestHeader(api_key, version, correlation_id, None, 0)
                self._apis.unsupported(Call(self._connection, header, frame, None))
                return
            call = self._call(frame)
            self._state = _State.HANDSHAKE
            call.go_on(handle, call.request, call)
            return
        self._handshake(self._call(frame))

    def _call(self, frame: memoryview) -> Call:
        header = parse_request_header(frame)
        if header.client_id:
            self._connection.client_id = header.client_id
        return Call(self._connection, header, frame, decode_request(header, frame))

    def _handshake(self, call: Call) -> None:
        request: SaslHandshakeRequest = call.request
        wanted, mechanisms = request.mechanism, self._mechanisms.names
        if wanted not in mechanisms:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            call.reply(SaslHandshakeResponse(error_code=code, mechanisms=mechanisms))
            self._wanted = ""
            self._refuse([], f"Unsupported SASL mechanism {wanted[:64]!r}")
            return
        call.reply(SaslHandshakeResponse(mechanisms=mechanisms))
        self._wanted = wanted
        if self._mechanism not in (None, wanted):
            self._state = _State.OTHER_MECHANISM
            return
        self._machine = self._mechanisms.begin(wanted)
        self._state = _State.TOKENS if call.version >= 1 else _State.BARE_TOKENS

    def _authenticate(self, frame: memoryview) -> None:
        call = self._call(frame)
        request = call.request
        if not isinstance(request, SaslAuthenticateRequest):
            self._refuse(_out_of_place(call.header, request), f"Unexpected Kafka request of type {request.API_KEY}")
            return
        header = call.header

        def answer(token: bytes, lifetime_ms: int) -> list[Chunk]:
            response = SaslAuthenticateResponse(error_message=None, auth_bytes=token, session_lifetime_ms=lifetime_ms)
            return [encode_response(response, header.api_version, header.correlation_id)]

        self._take(bytes(request.auth_bytes), answer, header)

    # -- tokens

    def _take(self, token: bytes, answer: Answer, header: RequestHeader | None = None) -> None:
        if self._machine is None:
            raise WireError("a token before a mechanism")
        self._settle(self._machine.step(token), answer, header)

    def _settle(self, outcome: Outcome, answer: Answer, header: RequestHeader | None) -> None:
        if isinstance(outcome, Challenge):
            self._connection.respond(answer(outcome.token, 0))
        elif isinstance(outcome, Done):
            self._done(outcome, answer, header)
        elif isinstance(outcome, Later):
            self._wait(outcome, answer, header)
        else:
            self._fail(outcome, header)

    def _wait(self, later: Later, answer: Answer, header: RequestHeader | None) -> None:
        connection = self._connection
        connection.hold()

        def handle_result(result: object) -> None:
            if connection.closed:
                return
            connection.release()
            outcome = Failed(reason=f"{result!r}") if isinstance(result, BaseException) else later.then(result)
            self._settle(outcome, answer, header)

        self._disk.run(later.job, handle_result)

    def _done(self, done: Done, answer: Answer, header: RequestHeader | None) -> None:
        connection, session = self._connection, self._connection.session
        if self._mechanism is not None and done.principal != session.principal:
            text = (
                "Cannot change principals during re-authentication from "
                f"{session.principal.kind}.{session.principal.name}: {done.principal.kind}.{done.principal.name}"
            )
            self._fail(Failed(text, text), header)
            return
        lifetime_ms = self._mechanisms.lifetime_ms(self._wanted, done, self._clock.wall_ms())
        session.principal = done.principal
        session.by_token = done.by_token
        session.expires_ms = None if lifetime_ms is None else self._clock.now_ms() + lifetime_ms
        self._mechanism = self._wanted
        self._machine = None
        self._state = _State.OPEN
        connection.respond(answer(done.token, lifetime_ms or 0))
        connection.connection.set_max_frame_bytes(self._open_max_frame_bytes)
        connection.__class__ = ClientConnection if lifetime_ms is None else ExpiringConnection
        connection.serve(self._apis)
        self._watcher.authenticated(session)

    def _fail(self, failed: Failed, header: RequestHeader | None) -> None:
        again = self._mechanism is not None
        text = failed.text or invalid_credentials(self._wanted, again=again)
        answer: list[Chunk] = []
        if header is not None:
            response = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=text)
            answer = [encode_response(response, header.api_version, header.correlation_id)]
        self._refuse(answer, failed.reason or text)

    def _refuse(self, answer: list[Chunk], reason: str) -> None:
        self._state = _State.REFUSED
        self._machine = None
        connection = self._connection
        self._watcher.refused(connection.session, connection.connection.peer, self._wanted, reason)
        self._delayed.add(connection, answer)

    def expired(self) -> None:
        """A request after the end of the session: the connection is closed."""
        self._watcher.expired(self._connection.session)
        self._connection.close()

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()


def _out_of_place(header: RequestHeader, request: Request) -> list[Chunk]:
    """ILLEGAL_SASL_STATE in a request's own form; where that has no place for an error, an empty answer."""
    if getattr(request, "acks", None) == 0:
        return []
    reason = f"Unexpected Kafka request of type {ApiKey(header.api_key).name} during SASL authentication."
    response = error_response(request, header.api_version, ErrorCode.ILLEGAL_SASL_STATE, reason)
    if response is None:
        response = response_class(header.api_key)()
    return [encode_response(response, header.api_version, header.correlation_id)]


class GuardedConnection(ClientConnection):
    """A connection whose client has not authenticated. The class of one whose client has is another."""

    __slots__ = ()

    def on_frame(self, frame: memoryview) -> None:
        self.active = True
        try:
            self.gate.on_frame(frame)
        except WireError as error:
            self.malformed(error)
        except Exception as error:
            self.handler_failed(ApiKey.SASL_AUTHENTICATE, error)
            self.close()

    def on_close(self, reason: str) -> None:
        self.gate.ended()
        super().on_close(reason)


class ExpiringConnection(ClientConnection):
    """A connection whose client has authenticated for a while."""

    __slots__ = ()

    def on_frame(self, frame: memoryview) -> None:
        gate: SaslGate = self.gate
        if bytes(frame[:2]) == _HANDSHAKE and gate.begin_again(frame):
            return
        expires_ms = self.session.expires_ms
        if expires_ms is not None and gate.now_ms >= expires_ms:
            gate.expired()
            return
        super().on_frame(frame)


def guard(connection: ClientConnection, gate: SaslGate, max_frame_bytes: int) -> None:
    """Put the gate before a connection: nothing of its listener can be reached until it opens."""
    connection.gate = gate
    connection.__class__ = GuardedConnection
    connection.serve(None)
    connection.connection.set_max_frame_bytes(max_frame_bytes)
