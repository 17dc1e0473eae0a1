"""The driver of `tanist.client` over the ports: in the virtual world, and against a cluster of processes.

Owns channels to brokers, and who leads and coordinates by their answers; KIP-951's hints only trigger a refresh. A
request is sent once: whether it is sent again is up to the client that asks. Each life of a client is a process of its
own to the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from tanist.broker.logins import ChannelLogin
from tanist.broker.network.channel import Channel, Channels
from tanist.client.errors import Meaning, error_in, meaning_in
from tanist.client.metadata import ClusterView, cluster_view, metadata_request
from tanist.client.requests import Ask, Coordinator, Leader, coordinator_in, find_coordinator
from tanist.ports import Clock, Network

BACKOFF_MS: Final = 50
REQUEST_TIMEOUT_MS: Final = 3_000
_MAX_FRAME_BYTES: Final = 64 << 20
_FIND_COORDINATOR_VERSION: Final = 4
_METADATA_VERSION: Final = 12

ResponseHandler = Callable[[Any | None], None]


class ClusterClient:
    def __init__(
        self,
        name: str,
        clock: Clock,
        network: Network,
        bootstrap: Sequence[tuple[str, int]],
        login: ChannelLogin | None = None,
        tls: str | None = None,
    ) -> None:
        """`login`: by what it authenticates. `tls`: the profile by which it dials."""
        self.name = name
        self.clock = clock
        self.errors: Counter[int] = Counter()
        """How often each error was the answer to `ask`."""
        self._life = 0
        self._bootstrap = bootstrap
        self._next_bootstrap = 0
        self._channels = Channels(
            clock, network, client_id=name, max_frame_bytes=_MAX_FRAME_BYTES, login=login, tls=tls
        )
        self._view = ClusterView()
        self._coordinators: dict[Coordinator, tuple[str, int]] = {}
        self._waiting: dict[Coordinator | None, list[Callable[[], None]]] = {}
        """Coordinators that it asks for, and what waits for that; None: leaders."""

    def next_life(self) -> None:
        """Ignore the answers to open requests, and timers, from here on."""
        self._life += 1
        self._waiting.clear()

    def end_life(self) -> None:
        """As if the process was killed: its connections close, without a goodbye."""
        self.next_life()
        self._coordinators.clear()
        self._channels.close()

    def later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call later, if this life still runs then."""
        life = self._life
        self.clock.call_at(self.clock.now_ms() + delay_ms, lambda: callback() if self._life == life else None)

    # -- brokers

    def channel(self, address: tuple[str, int]) -> Channel:
        return self._channels.to(address)

    def any_broker(self) -> Channel:
        self._next_bootstrap += 1
        return self.channel(self._bootstrap[self._next_bootstrap % len(self._bootstrap)])

    def leader_of(self, topic: str, partition: int) -> tuple[int, int, Channel] | None:
        """Its id, its leader epoch, and a channel to it."""
        found = self._view.leader_of(topic, partition)
        return None if found is None else (found[0].node_id, found[1], self.channel(found[0].address))

    def channel_to(self, to: Leader | Coordinator) -> Channel | None:
        """None if it is not known."""
        if isinstance(to, Coordinator):
            address = self._coordinators.get(to)
            return None if address is None else self.channel(address)
        where = self.leader_of(to.topic, to.partition)
        return None if where is None else where[2]

    # -- requests

    def ask(self, asked: Ask, handle_response: ResponseHandler) -> None:
        """Ask whom it concerns, after looking for that one if need be. `None` if no answer came."""
        if self.channel_to(asked.to) is None:
            self._find(asked.to, lambda: self._send_once(asked, handle_response))
        else:
            self._send_once(asked, handle_response)

    def _send_once(self, asked: Ask, handle_response: ResponseHandler) -> None:
        channel = self.channel_to(asked.to)
        if channel is None:
            handle_response(None)
            return

        def note_errors(response: Any | None) -> None:
            if response is not None and (error := error_in(response)):
                self.errors[error] += 1
            if meaning_in(response) is Meaning.FIND:
                if isinstance(asked.to, Coordinator):
                    self._coordinators.pop(asked.to, None)
                else:
                    self.refresh([asked.to.topic])
            handle_response(response)

        self._call(channel, asked.request, asked.newest, note_errors, REQUEST_TIMEOUT_MS + asked.patience_ms)

    def refresh(self, topics: Iterable[str]) -> None:
        """Ask any broker for the leaders; several calls at once are one request."""
        if None not in self._waiting:
            self._waiting[None] = []
            self.learn_topics(topics, lambda view: self._call_waiting(None))

    def learn_topics(self, names: Iterable[str], learnt: Callable[[ClusterView], None]) -> None:
        """Ask any broker for topics; `learnt` is called in any case."""

        def handle_response(response: Any | None) -> None:
            view = ClusterView() if response is None else cluster_view(response)
            if response is not None:
                self._view = self._view.merged(view)
            learnt(view)

        self._call(self.any_broker(), metadata_request(names), _METADATA_VERSION, handle_response)

    def _find(self, to: Leader | Coordinator, then: Callable[[], None]) -> None:
        """`then` is called in any case."""
        if isinstance(to, Leader):
            self.refresh([to.topic])
            self._waiting[None].append(then)
            return
        self._waiting.setdefault(to, []).append(then)
        if len(self._waiting[to]) == 1:

            def handle_response(response: Any | None) -> None:
                if meaning_in(response) is Meaning.DONE:
                    self._coordinators[to] = coordinator_in(response).address
                self._call_waiting(to)

            self._call(self.any_broker(), find_coordinator(to.kind, to.key), _FIND_COORDINATOR_VERSION, handle_response)

    def _call_waiting(self, to: Coordinator | None) -> None:
        for then in self._waiting.pop(to, ()):
            then()

    def _call(
        self,
        channel: Channel,
        request: Any,
        version: int,
        handle_response: ResponseHandler,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        life = self._life
        witness = self._witness_of(channel, request)

        def answered(response: Any | None) -> None:
            if self._life == life:
                if witness is not None:
                    witness(response)
                handle_response(response)

        channel.call(request, version, timeout_ms, answered)

    def _witness_of(self, channel: Channel, request: Any) -> ResponseHandler | None:
        """Who hears of the answer to this request, which goes out now, before the client acts on it."""
        return None
