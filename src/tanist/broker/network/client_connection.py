"""One accepted connection: frames in, answers out in the order of the requests (Kafka's promise to clients).

Requests are handled as they arrive. An answer that is not ready (a long poll, an acks=all produce) holds a slot, and
the answers behind it wait for their turn. The answers of a turn are sent in one go at its end (`flush`).

This file must not know any API beyond how to find its handler; Produce and Fetch are handed over without a header
object because they have a fast path.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tanist.broker.network.call import Call, Handlers, RequestMeter, Slot, WaitingRequest
from tanist.ports import TLS_CLIENT, Chunk, Connection
from tanist.security.session import Session
from tanist.wire.apis import ApiKey
from tanist.wire.errors import WireError
from tanist.wire.frames import RequestHeader, decode_request, parse_request_header

if TYPE_CHECKING:
    from tanist.wire.fetch import FetchPlan

_FIXED_HEADER = struct.Struct(">hhih")  # api key, version, correlation id, length of the client id

FastPathHandler = Callable[["ClientConnection", memoryview, int, int, int], None]
"""(connection, frame, body offset, version, correlation id)"""


@dataclass(frozen=True, slots=True)
class ListenerApis:
    """The APIs that a listener serves."""

    handlers: Handlers
    unsupported: Callable[[Call], None]
    """Answers an ApiVersions request of a version that is not known."""
    produce: FastPathHandler | None = None
    fetch: FastPathHandler | None = None
    """On listeners of brokers, Produce and Fetch go to these."""


class ConnectionOwner(Protocol):
    """The owner of the listener that accepted the connection (`connections.Connections`)."""

    requests: dict[int, int]
    """How many requests have come, by API key; Produce and Fetch are counted elsewhere."""
    meter: RequestMeter | None
    """While clients have quotas for the time that their requests take."""

    def malformed_request(self, peer: str, why: str) -> None:
        """A connection is closed for what it sent."""

    def handler_failed(self, api_key: int, error: Exception) -> None:
        """A handler has met an unexpected exception: the request is refused, or its connection closed."""

    def flush_later(self, connection: ClientConnection) -> None:
        """A client that is held back has not read its answers yet: look again shortly."""

    def release_later(self, connection: ClientConnection, throttle_ms: int) -> None:
        """Release it (`ClientConnection.release`) after so long."""

    def connection_closed(self, connection: ClientConnection) -> None:
        """The connection has ended."""


class ClientConnection:
    """The handler of one accepted connection (`ports.ConnectionHandler`)."""

    # A client that pipelines more than this many unanswered requests is not read from until some are answered; one that
    # does not read its answers is not read from either (queue bounds, DESIGN "every queue has a bound").
    MAX_UNANSWERED = 256
    MAX_UNSENT_BYTES = 64 << 20
    # Nor is one whose large produces wait for replicas: they would fill the answers to followers, and small produces of
    # other clients would wait behind them. Apache Kafka takes no second request before it has answered the first.
    MAX_UNREPLICATED_BYTES = 512 << 10

    __slots__ = (
        "_holds",
        "_owner",
        "_paused",
        "_touch",
        "_touched",
        "_unreplicated_bytes",
        "_unsupported",
        "active",
        "advertised",
        "broker_identity",
        "client_id",
        "closed",
        "closing",
        "connection",
        "fetch",
        "fetch_plan",
        "fetch_wait",
        "follower_session",
        "gate",
        "handlers",
        "idle_since_ms",
        "listener",
        "out",
        "produce",
        "session",
        "slots",
        "software",
    )

    def __init__(
        self,
        owner: ConnectionOwner,
        touch: Callable[[ClientConnection], None],
        connection: Connection,
        session: Session,
        apis: ListenerApis,
    ) -> None:
        """`touch` sees to a `flush` at the end of the turn."""
        self._owner = owner
        self._touch = touch
        self.connection = connection
        self.session = session
        self.listener = session.listener
        self.advertised = apis.handlers
        self._unsupported = apis.unsupported
        self.serve(apis)
        self.out: list[Chunk] = []
        self.slots: deque[Slot] = deque()
        self.closed = False
        self.client_id = ""
        self.software = ("unknown", "unknown")
        # What ends with the connection: the sessions of members of share groups.
        self.closing: dict[object, Callable[[], None]] = {}
        # Whether a request has come since housekeeping last looked, and since when none has.
        self.active = True
        self.idle_since_ms = 0
        # (broker id, broker epoch) once a broker has identified itself on this connection by a heartbeat.
        self.broker_identity: tuple[int, int] | None = None
        # The replica fetch that is being held for this connection, if any (`api/fetch.py`).
        self.fetch_wait: Any = None
        # The session of the follower that fetches on this connection (`replication/follower_sessions.py`).
        self.follower_session: Any = None
        # What stands before it until the client has authenticated (`authentication/gate.py`).
        self.gate: Any = None
        # How a consumer's requests begin, one after the other (`api/fetch.py`).
        self.fetch_plan: FetchPlan | None = None
        self._touched = False
        self._paused = False
        self._holds = 0
        self._unreplicated_bytes = 0

    def serve(self, apis: ListenerApis | None) -> None:
        """Hand requests to these from now on; None: to nobody."""
        self.handlers: Handlers = {} if apis is None else apis.handlers
        self.produce = None if apis is None else apis.produce
        self.fetch = None if apis is None else apis.fetch

    # -- frames in

    def on_open(self, connection: Connection) -> None:
        """Accepted connections are open from the start."""

    def on_frame(self, frame: memoryview) -> None:
        waiting = len(self.slots)
        try:
            api_key, version, correlation_id, client_id_length = _FIXED_HEADER.unpack_from(frame)
            handle: FastPathHandler | None = None
            if api_key == 0 and 3 <= version <= 13:
                handle = self.produce
                flexible_from = 9
            elif api_key == 1 and 4 <= version <= 18:
                handle = self.fetch
                flexible_from = 12
            if handle is not None:
                offset = 10 + client_id_length if client_id_length > 0 else 10
                if version >= flexible_from:
                    # Header v2 ends in tagged fields; nobody sends any, so one zero byte.
                    if frame[offset] != 0:
                        offset = parse_request_header(frame).body_offset
                    else:
                        offset += 1
        except (struct.error, IndexError, WireError) as error:
            self.malformed(error)
            return
        try:
            if handle is not None:
                handle(self, frame, offset, version, correlation_id)
            else:
                self._general(api_key, version, frame)
        except WireError as error:
            self.malformed(error)
            return
        except Exception as error:
            self._fast_path_failed(api_key, frame, waiting, error)
        self.active = True
        if self.slots and len(self.slots) >= self.MAX_UNANSWERED:
            self._hold_back()

    def malformed(self, error: Exception) -> None:
        """Close the connection for what it has sent."""
        self._owner.malformed_request(self.connection.peer, str(error))
        self.close()

    def handler_failed(self, api_key: int, error: Exception) -> None:
        """Count and report an unexpected exception of a handler; who calls sees to the answer."""
        self._owner.handler_failed(api_key, error)

    def go_on(self, api_key: int, frame: memoryview, step: Callable[[], None]) -> None:
        """Do what is left of a request of the fast path, of which `frame` was kept; as `on_frame`, if it raises."""
        waiting = len(self.slots)
        try:
            step()
        except WireError as error:
            self.malformed(error)
        except Exception as error:
            self._fast_path_failed(api_key, frame, waiting, error)

    def refuse_waiting(self, api_key: int, error: Exception, slot: Slot, refusal: Callable[[], list[Chunk]]) -> None:
        """A request of the fast path has met an unexpected exception after its wait: answer it with `refusal()`."""
        self._owner.handler_failed(api_key, error)
        if self.closed:
            return
        try:
            self.complete(slot, refusal())
        except Exception as again:
            self._owner.handler_failed(api_key, again)
            self.close()

    def end_follower_session(self) -> None:
        """It may take for sent what was not."""
        self.fetch_wait = None
        if self.follower_session is not None:
            self.follower_session.close()
            self.follower_session = None

    def _fast_path_failed(self, api_key: int, frame: memoryview, waiting: int, error: Exception) -> None:
        """The fast path has met an unexpected exception: no answer is ready, and a place for it is given up."""
        self._owner.handler_failed(api_key, error)
        while len(self.slots) > waiting:
            slot = self.slots.pop()
            if slot.waiting is not None:
                slot.waiting.done = True
        self.end_follower_session()
        try:
            header = parse_request_header(frame)
            request = decode_request(header, frame)
        except WireError as malformed:
            self.malformed(malformed)
            return
        Call(self, header, frame, request).refuse()

    def _general(self, api_key: int, version: int, frame: memoryview) -> None:
        entry = self.handlers.get(api_key)
        if api_key == ApiKey.API_VERSIONS and (entry is None or not entry[0] <= version <= entry[1]):
            # A client newer than us learns what we speak from a v0 answer with error 35 (KIP-511).
            header = RequestHeader(api_key, version, int.from_bytes(frame[4:8], "big", signed=True), None, 0)
            self._unsupported(Call(self, header, frame, None))
            return
        if entry is None or not entry[0] <= version <= entry[1]:
            raise WireError(f"api {api_key} version {version} is not served on listener {self.listener}")
        header = parse_request_header(frame)
        if header.client_id:
            self.client_id = header.client_id
        requests = self._owner.requests
        requests[api_key] = requests.get(api_key, 0) + 1
        request = decode_request(header, frame)
        call = Call(self, header, frame, request)
        call.meter = self._owner.meter
        call.go_on(entry[2], request, call)

    # -- answers out

    def respond(self, chunks: list[Chunk]) -> None:
        """Queue an answer that is ready now."""
        if self.slots:
            self.slots.append(Slot(chunks))
        else:
            self.out.extend(chunks)
        if not self._touched:
            self._touched = True
            self._touch(self)

    def respond_one(self, frame: bytes) -> None:
        """`respond` for the commonest answer: one piece."""
        if self.slots:
            self.slots.append(Slot([frame]))
        else:
            self.out.append(frame)
        if not self._touched:
            self._touched = True
            self._touch(self)

    def reserve(self, waiting: WaitingRequest | None = None) -> Slot:
        """Hold the place of an answer that is not ready. `waiting` is given up when the client goes."""
        slot = Slot(None, waiting)
        self.slots.append(slot)
        return slot

    def complete(self, slot: Slot | None, chunks: list[Chunk]) -> None:
        """Fill a reserved place (None: there was no wait)."""
        if slot is None:
            self.respond(chunks)
            return
        slot.chunks = chunks
        self.touch()

    def touch(self) -> None:
        if not self._touched:
            self._touched = True
            self._touch(self)

    def take(self) -> list[Chunk]:
        """Take what is ready to be sent, in order; the connection counts as untouched again."""
        self._touched = False
        slots = self.slots
        if slots:
            out = self.out
            while slots and (chunks := slots[0].chunks) is not None:
                out.extend(chunks)
                slots.popleft()
        out, self.out = self.out, []
        return out

    def bar(self) -> list[tuple[Slot, list[Chunk]]]:
        """End of a turn whose answers have to wait: all that are ready, and their places.

        They are sent when their places are filled again (`complete`), in order.
        """
        self._touched = False
        if self.out:
            self.slots.appendleft(Slot(self.out))
            self.out = []
        barred = [(slot, slot.chunks) for slot in self.slots if slot.chunks is not None]
        for slot, _ in barred:
            slot.chunks = None
        if not barred:
            self.send([])
        return barred

    def flush(self) -> None:
        """End of turn: send what is ready."""
        if self.slots or self._paused or self.closed:
            self.send(self.take())
            return
        self._touched = False
        chunks = self.out
        if chunks:
            self.out = []
            connection = self.connection
            connection.send(chunks)
            if len(chunks) > 1 and connection.pending_bytes > self.MAX_UNSENT_BYTES:
                self._hold_back()  # only answers with records are of several pieces, and only those add up

    def send(self, chunks: list[Chunk]) -> None:
        """Send what `take` gave; hold a client back that does not read, and let it go on when it has."""
        if self.closed:
            return
        if chunks:
            self.connection.send(chunks)
        if self._paused:
            self._let_go_on()
        elif len(chunks) > 1 and self.connection.pending_bytes > self.MAX_UNSENT_BYTES:
            self._hold_back()

    def hold(self) -> None:
        """Read no more until `release`: the next request is to be handled after this one, whatever that waits for.

        Each who holds it releases it.
        """
        self._holds += 1
        self.connection.pause()

    def release(self) -> None:
        """Go on after `hold`."""
        self._holds -= 1
        if not self._holds and not self._paused and not self.closed:
            self.connection.resume()

    def mute(self, throttle_ms: int) -> None:
        """Read no more for so long; answers go out (KIP-219)."""
        if not self.closed:
            self.hold()
            self._owner.release_later(self, throttle_ms)

    def add_unreplicated(self, size: int) -> None:
        """A large produce of so many bytes waits for replicas."""
        before = self._unreplicated_bytes
        self._unreplicated_bytes = before + size
        if before < self.MAX_UNREPLICATED_BYTES <= before + size:
            self.hold()

    def replicated(self, size: int) -> None:
        """It waits no longer."""
        before = self._unreplicated_bytes
        self._unreplicated_bytes = before - size
        if before >= self.MAX_UNREPLICATED_BYTES > before - size:
            self.release()

    def _hold_back(self) -> None:
        self._paused = True
        self.connection.pause()
        self.touch()

    def _let_go_on(self) -> None:
        if len(self.slots) < self.MAX_UNANSWERED:
            if self.connection.pending_bytes <= self.MAX_UNSENT_BYTES:
                self._paused = False
                if not self._holds:
                    self.connection.resume()
            else:
                self._owner.flush_later(self)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.connection.close()

    def on_close(self, reason: str) -> None:
        if TLS_CLIENT in reason:
            self._owner.malformed_request(self.connection.peer, f"{TLS_CLIENT}, to listener {self.listener}")
        self.closed = True
        for slot in self.slots:
            if slot.waiting is not None:
                slot.waiting.done = True
        self.slots.clear()
        self.out.clear()
        self.end_follower_session()
        closing, self.closing = self.closing, {}
        for end in closing.values():
            end()
        self._owner.connection_closed(self)
