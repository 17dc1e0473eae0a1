"""Other brokers that are asked one request at a time: what is queued meanwhile goes into the next one.

Owns the connection to each broker's inter-broker listener, made anew when that moves, and when a queue is sent. The
caller owns the queue's content, the requests and the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from typing import Any, Generic, TypeVar

from tanist.broker.context import NodeContext
from tanist.broker.network.channel import Answer, Channel
from tanist.ports import Clock

QueueT = TypeVar("QueueT", bound=Sized)


class Peer(Generic[QueueT]):
    """One broker."""

    def __init__(
        self,
        clock: Clock,
        broker_id: int,
        endpoint: tuple[str, int],
        channel: Channel,
        queue: QueueT,
        send: Callable[[Peer[QueueT]], None],
    ) -> None:
        self._clock = clock
        self._send = send
        self.broker_id = broker_id
        self.endpoint = endpoint
        self.channel = channel
        self.queue = queue
        self._under_way = False
        self._scheduled = False

    def schedule(self) -> None:
        """See to it that the queue is sent: with the next turn, or when the request under way is answered."""
        if self.queue and not self._under_way and not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        if not self._under_way:
            self._send(self)

    def call(self, request: Any, version: int, timeout_ms: int, on_answer: Answer) -> None:
        """Send what was taken from the queue; after its answer the rest is sent."""

        def handle_response(response: Any | None) -> None:
            self._under_way = False
            on_answer(response)
            self.schedule()

        self._under_way = True
        self.channel.call(request, version, timeout_ms, handle_response)


class Peers(Generic[QueueT]):
    """All brokers that have been asked."""

    def __init__(
        self,
        context: NodeContext,
        endpoint_of: Callable[[int], tuple[str, int] | None],
        purpose: str,
        max_frame_bytes: int,
        make_queue: Callable[[], QueueT],
        send: Callable[[Peer[QueueT]], None],
    ) -> None:
        """`purpose` is a part of the client id. `send` takes from the queue, and makes a `call` if there is need."""
        self._context = context
        self._endpoint_of = endpoint_of
        self._client_id = f"broker-{context.node_id}-{purpose}"
        self._max_frame_bytes = max_frame_bytes
        self._make_queue = make_queue
        self._send = send
        self._peers: dict[int, Peer[QueueT]] = {}

    def __iter__(self) -> Iterator[Peer[QueueT]]:
        return iter(self._peers.values())

    def find(self, broker_id: int) -> Peer[QueueT] | None:
        """The broker, at its endpoint of now; None if it has none."""
        endpoint = self._endpoint_of(broker_id)
        if endpoint is None:
            return None
        peer = self._peers.get(broker_id)
        if peer is None:
            peer = self._peers[broker_id] = Peer(
                self._context.clock, broker_id, endpoint, self._channel(endpoint), self._make_queue(), self._send
            )
        elif peer.endpoint != endpoint:
            peer.channel.close()
            peer.endpoint, peer.channel = endpoint, self._channel(endpoint)
        return peer

    def close(self) -> None:
        """The broker is going down."""
        for peer in self._peers.values():
            peer.channel.close()

    def _channel(self, endpoint: tuple[str, int]) -> Channel:
        return Channel(
            self._context.clock,
            self._context.network,
            *endpoint,
            client_id=self._client_id,
            max_frame_bytes=self._max_frame_bytes,
            login=self._context.logins.to_brokers,
            tls=self._context.config.tls.to_brokers,
        )
