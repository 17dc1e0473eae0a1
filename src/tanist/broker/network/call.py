"""A request that is being handled: its one answer, and how its handler goes on later.

A handler that cannot answer in its first turn registers what is left of it with `Call.later`, and hands the result to
whatever it waits for: the controller, another broker, a coordinator, a log, a timer. An exception in it is one of the
request, as in the first turn: the request is refused, and counted. State that the exception may have torn has been
given up by then, by the part that owns it (docs/operations.md has the table).

This file must not know any API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol

from tanist.ports import Chunk, Connection
from tanist.security.requirements import Row
from tanist.security.session import Session
from tanist.wire.acls import CLUSTER_NAME
from tanist.wire.error_responses import error_response
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.frames import RequestHeader, encode_response, with_throttle_time

P = ParamSpec("P")
Q = ParamSpec("Q")

_UNEXPECTED = "The broker has met an unexpected error."

Handler = Callable[[Any, "Call"], None]
"""(decoded request, call)"""
Handlers = Mapping[int, tuple[int, int, Handler]]
"""By API key: the lowest and the highest version, and the handler."""


class WaitingRequest(Protocol):
    """A request that waits for an event or its deadline. Whatever holds it passes over one that is `done`."""

    done: bool


@dataclass(slots=True, eq=False)
class Slot:
    """The place of one answer in its connection's order."""

    chunks: list[Chunk] | None = None
    """None until the answer is ready."""
    waiting: WaitingRequest | None = None
    """The request that is to be answered, if it can be given up."""


class RequestMeter(Protocol):
    """Measures the time of requests, while clients have quotas for it (`client_throttles.ClientThrottles`)."""

    def now_ns(self) -> int:
        """The time by which steps are measured."""

    def throttle_ms(self, call: Call, spent_ns: int, error: int) -> int:
        """The call is answered with this error, after so much time: the time in ms that its client has to wait."""


class RequestConnection(Protocol):
    """The connection that a request has come by (`client_connection.ClientConnection`)."""

    connection: Connection
    listener: str
    session: Session
    software: tuple[str, str]
    """Name and version of the client's software, as ApiVersions has said."""
    handlers: Handlers
    advertised: Handlers
    """What a client hears of, before it has authenticated too."""
    closed: bool
    closing: dict[object, Callable[[], None]]
    """What ends with the connection."""
    broker_identity: tuple[int, int] | None
    """The broker at the other end, and its epoch, once a request has named them."""

    def reserve(self, waiting: WaitingRequest | None = None) -> Slot:
        """Hold the place of an answer that is not ready. `waiting` is given up when the client goes."""

    def complete(self, slot: Slot | None, chunks: list[Chunk]) -> None:
        """Fill a reserved place (None: there was no wait)."""

    def malformed(self, error: Exception) -> None:
        """Close the connection for what it has sent."""

    def handler_failed(self, api_key: int, error: Exception) -> None:
        """Count and report an unexpected exception of a handler."""

    def mute(self, throttle_ms: int) -> None:
        """Read no more for so long; answers go out."""

    def close(self) -> None:
        """No answer can be given: the client is to see that its request has no end."""


class Continuation(Generic[P]):
    """What is left of a handler. It never raises: what it meets is its request's."""

    __slots__ = ("_call", "_then")

    def __init__(self, call: Call, then: Callable[P, None]) -> None:
        self._call = call
        self._then = then

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        self._call.go_on(self._then, *args, **kwargs)

    def fail(self, error: Exception) -> None:
        """What the request waits for has met an exception itself."""
        if not self._call.answered:
            self._call.failed(error)

    def after(self, step: Callable[Q, None]) -> Continuation[Q]:
        """`step`, of the same request; it is to call this one."""
        return Continuation(self._call, step)


class Call:
    """A request being handled: who asked, with which header, and where its answer goes."""

    __slots__ = (
        "_amend",
        "_began_ns",
        "_slot",
        "_spent_ns",
        "answered",
        "connection",
        "frame",
        "header",
        "meter",
        "reply_with",
        "request",
        "session",
        "throttle_ms",
    )

    def __init__(
        self,
        connection: RequestConnection,
        header: RequestHeader,
        frame: memoryview,
        request: Any,
        session: Session | None = None,
    ) -> None:
        """`session`: of the client whose request a broker has passed on; None: the connection's."""
        self.connection = connection
        self.session = connection.session if session is None else session
        self.header = header
        self.frame = frame
        self.request = request
        self._amend: Callable[[Any], Any] | None = None
        self._slot: Slot | None = None
        self.answered = False
        # An envelope's inner call answers through its outer one (`api/envelope.py`).
        self.reply_with: Callable[[Any], None] | None = None
        self.meter: RequestMeter | None = None
        self.throttle_ms = 0
        """How long the client has to wait for what it has asked, beside the time that this has taken."""
        self._began_ns = 0
        self._spent_ns = 0

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def listener(self) -> str:
        """Name of the listener the request came in by."""
        return self.connection.listener

    @property
    def client(self) -> tuple[str, str]:
        """Client id and host, as groups describe their members; a host is written as Java writes it."""
        return self.header.client_id or "", f"/{self.session.host}"

    def may(self, row: Row, name: str | None = CLUSTER_NAME) -> bool:
        """Whether the client may do what the row of the table needs, on the resource of this name."""
        session = self.session
        return session.access.may(session, row, name)

    def operations(self, row: Row, name: str = CLUSTER_NAME) -> int:
        """What the client may do on the resource: a bit for each operation that its type has."""
        session = self.session
        return session.access.operations(session, row, name)

    # -- the answer

    def amend(self, step: Callable[[Any], Any]) -> None:
        """Have `step` make the answer of the one that is given: for a part of the request that is decided already."""
        self._amend = step

    def reply(self, response: Any, *, version: int | None = None) -> None:
        """Answer. The handler that took the call must do so exactly once.

        A response that cannot be sent refuses the request; it is no matter of the part that has decided it.
        """
        try:
            self._answer(response, version)
        except Exception as error:
            self.failed(error)

    def reply_chunks(self, chunks: Sequence[bytes]) -> None:
        """Answer with an encoded frame, length prefix included."""
        if self.answered:
            return
        throttle_ms = self._throttle_ms(ErrorCode.NONE)
        if throttle_ms:
            frame = b"".join(chunks)
            chunks = [with_throttle_time(self.header.api_key, self.version, frame, throttle_ms)]
        self.answered = True
        self.connection.complete(self._slot, list(chunks))
        if throttle_ms:
            self.connection.mute(throttle_ms)

    def _answer(self, response: Any, version: int | None = None) -> None:
        if self.answered:
            return  # it was refused for an unexpected exception, and somebody had gone on with it
        if self._amend is not None:
            amend, self._amend = self._amend, None
            response = amend(response)
        throttle_ms = self._throttle_ms(getattr(response, "error_code", ErrorCode.NONE))
        if throttle_ms and "throttle_time_ms" in response.DEFAULTS:
            response = copy(response)  # it may be one for all
            response.throttle_time_ms = throttle_ms
        if self.reply_with is not None:
            self.reply_with(response)
            self.answered = True
            return
        header = self.header
        frame = encode_response(response, header.api_version if version is None else version, header.correlation_id)
        self.answered = True
        self.connection.complete(self._slot, [frame])
        if throttle_ms:
            self.connection.mute(throttle_ms)

    def _throttle_ms(self, error: int) -> int:
        """How long the client has to wait, with all that has been spent on its request."""
        meter, self.meter = self.meter, None
        if meter is None:
            return self.throttle_ms
        spent_ns = self._spent_ns + (meter.now_ns() - self._began_ns if self._began_ns else 0)
        return max(self.throttle_ms, meter.throttle_ms(self, spent_ns, error))

    def refuse(self) -> None:
        """Answer UNKNOWN_SERVER_ERROR, if nothing else was: an unexpected exception has come up.

        Close the connection where a response has no place for that, or none is sent (acks=0).
        """
        if self.answered:
            return
        request = self.request
        try:
            refused = None
            if getattr(request, "acks", None) != 0:
                refused = error_response(request, self.version, ErrorCode.UNKNOWN_SERVER_ERROR, _UNEXPECTED)
            if refused is not None:
                self._answer(refused)
                return
        except Exception as error:
            self.connection.handler_failed(self.header.api_key, error)
        self.connection.close()

    # -- going on later

    def wait(self, waiting: WaitingRequest | None = None) -> None:
        """The answer comes later: keep its place. The frame's memory is not valid by then.

        `waiting` is given up when the client goes. For those who answer in a step of their own state (the controller,
        the quorum): handlers go on by `later`.
        """
        if self._slot is None and self.reply_with is None and not self.answered:
            self._slot = self.connection.reserve(waiting)
            self.frame = memoryview(b"")

    def later(self, then: Callable[P, None], waiting: WaitingRequest | None = None) -> Continuation[P]:
        """`wait`, and have the handler go on with `then`, as often as it is called."""
        self.wait(waiting)
        return Continuation(self, then)

    def go_on(self, then: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a part of the handler."""
        meter = None if self._began_ns else self.meter
        if meter is not None:
            self._began_ns = meter.now_ns()
        try:
            then(*args, **kwargs)
        except Exception as error:
            self.failed(error)
        if meter is not None:
            self._spent_ns += meter.now_ns() - self._began_ns
            self._began_ns = 0

    def failed(self, error: Exception) -> None:
        """A part of the handler has met an exception: it is the request's, which is refused."""
        if isinstance(error, WireError):
            self.connection.malformed(error)
            return
        self.connection.handler_failed(self.header.api_key, error)
        self.refuse()
