"""The client side of RPCs between nodes: one connection, requests matched to answers by correlation id.

A channel connects on demand and reports failure of every request that was under way when its connection ends. It never
retries: the caller knows whether asking again is right.

Where the other side wants to know who asks, the channel says so first, and again before that expires (KIP-368);
requests wait meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tanist.broker.logins import ChannelLogin
from tanist.ports import Clock, Connection, Network, Timer
from tanist.security.sasl.client import Authenticated, SaslDialogue, version_of
from tanist.security.sasl.outcome import SaslError
from tanist.wire.errors import WireError
from tanist.wire.frames import correlation_id_of, decode_response, encode_request
from tanist.wire.schema import Request

Answer = Callable[[Any | None], None]
RawAnswer = Callable[[memoryview | None], None]


class FrameLender:
    """One connection of a channel. While it is held it receives nothing, and the memory of its frames stays."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def hold(self) -> None:
        self._connection.pause()

    def release(self) -> None:
        self._connection.resume()


class Channel:
    """RPCs to one endpoint. `on_answer(None)` means: no answer will come (refused, reset, timed out, malformed)."""

    MAX_IN_FLIGHT = 1000

    def __init__(
        self,
        clock: Clock,
        network: Network,
        host: str,
        port: int,
        *,
        client_id: str,
        max_frame_bytes: int,
        on_lost: Callable[[str], None] | None = None,
        login: ChannelLogin | None = None,
        tls: str | None = None,
    ) -> None:
        """`login`: by what it authenticates. `tls`: the profile by which it dials."""
        self.host = host
        self.port = port
        self._clock = clock
        self._network = network
        self._client_id = client_id
        self._max_frame_bytes = max_frame_bytes
        self._on_lost = on_lost
        self._connection: Connection | None = None
        self._opened = False
        self.lost_open = False
        """Whether the last connection that was lost had opened: what was under way on it may have arrived."""
        self._closed = False
        self._correlation_id = 0
        self._in_flight: dict[int, tuple[RawAnswer, Timer]] = {}
        self._login = login
        self._tls = tls
        self._waiting: list[bytes] | None = None
        """Frames that wait for the authentication under way; None: there is none."""
        self._renewal: Timer | None = None

    @property
    def connected(self) -> bool:
        return self._connection is not None and self._opened

    @property
    def requests_under_way(self) -> int:
        return len(self._in_flight)

    @property
    def lender(self) -> FrameLender | None:
        """The present connection, whose frames may be lent beyond the turn."""
        return None if self._connection is None else FrameLender(self._connection)

    def call(self, request: Any, version: int, timeout_ms: int, on_answer: Answer) -> None:
        """Send `request` (a generated message) at `version`; `on_answer` gets the decoded response or None."""
        api_key: int = request.API_KEY

        def decode(frame: memoryview | None) -> None:
            if frame is None:
                on_answer(None)
                return
            try:
                response = decode_response(api_key, version, frame)
            except WireError as error:
                self._drop(f"malformed answer to api {api_key}: {error}")
                on_answer(None)
                return
            on_answer(response)

        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = encode_request(request, version, self._correlation_id, self._client_id)
        self._send(frame, self._correlation_id, timeout_ms, decode)

    def call_raw(self, encode: Callable[[int], bytes], timeout_ms: int, on_answer: RawAnswer) -> None:
        """Send the frame that `encode(correlation_id)` gives; the answer's frame is passed on undecoded."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._send(encode(self._correlation_id), self._correlation_id, timeout_ms, on_answer)

    def close(self) -> None:
        """Close for good; requests under way get None."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _send(self, frame: bytes, correlation_id: int, timeout_ms: int, on_answer: RawAnswer) -> None:
        if self._closed or len(self._in_flight) >= self.MAX_IN_FLIGHT:
            self._clock.call_soon(lambda: on_answer(None))
            return
        connection = self._connection
        if connection is None:
            self._opened = False
            handler = _Handler(self)
            connection = self._connection = handler.connection = self._network.connect(
                self.host, self.port, handler, max_frame_bytes=self._max_frame_bytes, tls=self._tls
            )
            if self._login is not None:
                self._authenticate(self._login)
        timer = self._clock.call_at(self._clock.now_ms() + timeout_ms, lambda: self._timed_out(correlation_id))
        self._in_flight[correlation_id] = (on_answer, timer)
        if self._waiting is None:
            connection.send((frame,))
        else:
            self._waiting.append(frame)

    def _authenticate(self, login: ChannelLogin) -> None:
        """Say who asks; what is sent from now on waits for that."""
        self._waiting = []
        dialogue = login.credentials.begin()
        self._ask(login, dialogue, dialogue.first())

    def _ask(self, login: ChannelLogin, dialogue: SaslDialogue, request: Request) -> None:
        connection = self._connection
        if connection is None:
            return
        version = version_of(request)
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF

        def handle_response(frame: memoryview | None) -> None:
            if frame is None:
                return  # the requests that wait get the same
            try:
                step = dialogue.handle_response(decode_response(request.API_KEY, version, frame))
            except (SaslError, WireError) as error:
                login.on_failed(self.host, self.port, str(error))
                self._drop(f"authentication failed: {error}")
                return
            if isinstance(step, Authenticated):
                self._authenticated(login, step)
            else:
                self._ask(login, dialogue, step)

        timer = self._clock.call_at(self._clock.now_ms() + login.timeout_ms, lambda: self._timed_out(correlation_id))
        self._in_flight[correlation_id] = (handle_response, timer)
        connection.send((encode_request(request, version, correlation_id, self._client_id),))

    def _authenticated(self, login: ChannelLogin, step: Authenticated) -> None:
        connection, self._renewal = self._connection, None
        waiting, self._waiting = self._waiting, None
        if connection is None:
            return
        if waiting:
            connection.send(waiting)
        if step.renew_after_ms is not None:
            at_ms = self._clock.now_ms() + step.renew_after_ms
            self._renewal = self._clock.call_at(at_ms, lambda: self._authenticate(login))

    def _timed_out(self, correlation_id: int) -> None:
        if correlation_id in self._in_flight:
            # A late answer would be taken for that of a later request: the connection is spent.
            self._drop("request timed out")

    def _drop(self, reason: str) -> None:
        connection, self._connection = self._connection, None
        self.lost_open = self._opened
        self._opened = False
        self._waiting = None
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None
        if connection is not None:
            connection.close()
        waiting, self._in_flight = self._in_flight, {}
        for on_answer, timer in waiting.values():
            timer.cancel()
            on_answer(None)
        if connection is not None and not self._closed and self._on_lost is not None:
            self._on_lost(reason)

    def _on_open(self, connection: Connection | None) -> None:
        if connection is self._connection:
            self._opened = True

    def _on_frame(self, connection: Connection | None, frame: memoryview) -> None:
        if connection is not self._connection:
            return
        try:
            correlation_id = correlation_id_of(frame)
        except WireError:
            self._drop("malformed answer")
            return
        entry = self._in_flight.pop(correlation_id, None)
        if entry is None:
            self._drop(f"answer to a request never sent ({correlation_id})")
            return
        on_answer, timer = entry
        timer.cancel()
        on_answer(frame)


class Channels:
    """A channel to each address that was asked for."""

    def __init__(
        self,
        clock: Clock,
        network: Network,
        *,
        client_id: str,
        max_frame_bytes: int,
        login: ChannelLogin | None = None,
        tls: str | None = None,
    ) -> None:
        self._clock = clock
        self._network = network
        self._client_id = client_id
        self._max_frame_bytes = max_frame_bytes
        self._login = login
        self._tls = tls
        self._by_address: dict[tuple[str, int], Channel] = {}

    def to(self, address: tuple[str, int]) -> Channel:
        """The channel to a host and port."""
        found = self._by_address.get(address)
        if found is None:
            found = self._by_address[address] = Channel(
                self._clock,
                self._network,
                *address,
                client_id=self._client_id,
                max_frame_bytes=self._max_frame_bytes,
                login=self._login,
                tls=self._tls,
            )
        return found

    def close(self) -> None:
        """Close all of them; the next request to an address opens another."""
        channels, self._by_address = self._by_address, {}
        for channel in channels.values():
            channel.close()


class _Handler:
    """Ties callbacks to the connection they belong to, so that a late one of an old connection is not believed."""

    __slots__ = ("channel", "connection")

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.connection: Connection | None = None

    def on_open(self, connection: Connection) -> None:
        self.channel._on_open(self.connection)

    def on_frame(self, frame: memoryview) -> None:
        self.channel._on_frame(self.connection, frame)

    def on_close(self, reason: str) -> None:
        if self.connection is not None and self.connection is self.channel._connection:
            self.channel._drop(reason)
