"""Clients with quotas: they write, read and ask for topics as fast as they are answered, and do not heed throttles.

Owns what they ask for, one request at a time. They keep their connections, for a mute is a connection's. Topics are
asked for with `validate_only`, which quotas count and nobody makes. They judge nothing: the checkers read their frames
(`checkers.quotas`). Dialers connect, ask one thing, and connect again.

In the end each client writes to every broker, until it is throttled, or surely is not, as the quotas say (L17).
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from tanist.broker.network.channel import Channel, Channels
from tanist.client.admin import create_topics_request, new_topic
from tanist.client.positions import fetch_request
from tanist.client.sequences import produce_request
from tanist.security.sasl.outcome import PLAIN
from tanist.sim.metered import METERED_TOPIC, PRODUCE, UNLIMITED, Metered
from tanist.sim.oracle import Oracle
from tanist.sim.quota_oracle import QuotaOracle
from tanist.sim.secured import PASSWORDS, Shown
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History, Send
from tanist.sim.world.world import BROKER_PORT, World
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.api_versions_request import ApiVersionsRequest

WRITE, READ, TOPICS = "write", "read", "topics"
_KINDS: Final = {WRITE: 6, READ: 6, TOPICS: 2}
_PRODUCE_VERSION: Final = 9
_FETCH_VERSION: Final = 12
_TOPICS_VERSIONS: Final = (5, 7)
"""One from before THROTTLING_QUOTA_EXCEEDED, and one that knows it."""
_API_VERSIONS_VERSION: Final = 3
_TIMEOUT_MS: Final = 55_000
"""Longer than anybody is throttled."""
_DIAL_MS: Final = 3_000
_PRODUCE_MS: Final = 1_000
_VALUE_BYTES: Final = 300
READ_BYTES_MAX: Final = 400
"""About a batch."""
_PARTITIONS_MAX: Final = 6
_ANYWHERE: Final = 0.1
"""The share of reads and writes that go to a broker that does not lead."""
_PAUSE_MS: Final = (5, 60)
_DIAL_PAUSE_MS: Final = (10, 30)
_AGAIN_MS: Final = 50
_UNTHROTTLED: Final = 20
"""A client that has written so often, and was not throttled, has exceeded each quota that it might have."""
_MAX_FRAME_BYTES: Final = 1 << 20


class QuotaClient(SimClient):
    """Asks for one thing after the other."""

    def __init__(self, world: World, metered: Metered, history: History, oracle: Oracle, quotas: QuotaOracle) -> None:
        super().__init__(world, metered.name, history)
        self.metered = metered
        self._oracle = oracle
        self._quotas = quotas
        self._count = 0
        self._open = False
        self.left: list[int] = []
        """Brokers that do not yet answer as they have to, in the end."""
        self._ends = False
        self._unthrottled = 0
        self._connect_anew()

    @property
    def idle(self) -> bool:
        return not self._open

    def start(self) -> None:
        self.run(self._next)

    def write_everywhere(self) -> None:
        """Once more, over new connections. It must be idle."""
        self.stopped, self._ends, self._unthrottled = False, True, 0
        self.left = [host.node_id for host in self.world.brokers]
        self._connect_anew()
        self.run(self._next)

    def _connect_anew(self) -> None:
        user, client_id = self.metered
        self._channels.close()
        login = Shown(PLAIN, user, PASSWORDS[user]).login(self.rng)
        self._channels = Channels(
            self.clock, self._network, client_id=client_id, max_frame_bytes=_MAX_FRAME_BYTES, login=login
        )

    # -- one after the other

    def _next(self) -> None:
        if self.stopped:
            return
        if self._ends:
            if self.left:
                self._write(self.left[0])
            return
        (kind,) = self.rng.choices(list(_KINDS), weights=list(_KINDS.values()))
        anywhere = kind == TOPICS or self.rng.random() < _ANYWHERE
        node_id = self.rng.choice(self.world.brokers).node_id if anywhere else self._leader()
        getattr(self, f"_{kind}")(node_id)

    def _write(self, node_id: int | None) -> None:
        self._count += 1
        value = f"{self.name}-{self._count}-".encode().ljust(_VALUE_BYTES, b"x")
        send = Send(self.name, self._count, METERED_TOPIC, 0, value, self.now_us, ordered=False)
        self.history.sent(send)
        batch = encode_batch([NewRecord(timestamp=self.clock.wall_ms(), key=None, value=value)])
        request = produce_request((METERED_TOPIC, 0), bytes(batch), timeout_ms=_PRODUCE_MS)

        def take(response: Any) -> None:
            answer = response.responses[0].partition_responses[0]
            if answer.error_code == ErrorCode.NONE:
                self.history.acknowledged(send, answer.base_offset, self.now_us)

        self._ask(node_id, request, _PRODUCE_VERSION, take)

    def _read(self, node_id: int | None) -> None:
        request = fetch_request((METERED_TOPIC, 0), 0, max_bytes=READ_BYTES_MAX, max_wait_ms=100)
        self._ask(node_id, request, _FETCH_VERSION)

    def _topics(self, node_id: int | None) -> None:
        self._count += 1
        wanted = new_topic(
            f"{self.name}-{self._count}", partitions=self.rng.randint(1, _PARTITIONS_MAX), replication_factor=1
        )
        request = create_topics_request(wanted)
        request.validate_only = True
        self._ask(node_id, request, self.rng.choice(_TOPICS_VERSIONS))

    def _ask(self, node_id: int | None, request: Any, version: int, take: Any = None) -> None:
        self._open = True

        def handle_response(response: Any | None) -> None:
            self._open = False
            if response is not None and take is not None:
                take(response)
            if self._ends:
                self._judge(None if response is None else response.throttle_time_ms)
                self.later(_AGAIN_MS, self._next)
            else:
                self.later(self.rng.randint(*_PAUSE_MS), self._next)

        self._to(node_id).call(request, version, _TIMEOUT_MS, handle_response)

    def _judge(self, throttle_ms: int | None) -> None:
        """Whether the broker does with it what the quotas say, of those that stay."""
        limit = self._quotas.newest.limit(PRODUCE, *self.metered)
        is_limited = limit is not None and limit.bound < UNLIMITED
        self._unthrottled = 0 if throttle_ms is None or throttle_ms else self._unthrottled + 1
        if throttle_ms:
            self._connect_anew()
        if throttle_ms if is_limited else self._unthrottled >= _UNTHROTTLED:
            del self.left[0]
            self._unthrottled = 0

    # -- whom

    def _to(self, node_id: int | None) -> Channel:
        host = self.world.hosts.get(-1 if node_id is None else node_id) or self.rng.choice(self.world.brokers)
        return self.channel((host.name, BROKER_PORT))

    def _leader(self) -> int | None:
        topic_id = self._oracle.image.topic_ids.get(METERED_TOPIC)
        state = None if topic_id is None else self._oracle.states.get((topic_id, 0))
        return None if state is None else state.leader


class DialWitness(Protocol):
    """The part of the checkers that a dialer reports to (`checkers.quotas`)."""

    def dials(self, address: str, broker: str) -> Any:
        """It is about to connect."""

    def answered(self, dial: Any) -> None:
        """The connection was taken."""


class Dialer(SimClient):
    """Connects to one broker again and again, asks which versions it has, and closes."""

    def __init__(self, world: World, address: str, history: History, witness: DialWitness) -> None:
        super().__init__(world, address, history)
        self._witness = witness
        self._broker = self.rng.choice(world.brokers).name
        self._under_way: Channels | None = None

    @property
    def idle(self) -> bool:
        return self._under_way is None

    def start(self) -> None:
        self.run(self._next)

    def _next(self) -> None:
        if self.stopped:
            return
        channels = self._under_way = Channels(
            self.clock, self._network, client_id=self.name, max_frame_bytes=_MAX_FRAME_BYTES
        )

        dial = self._witness.dials(self.name, self._broker)

        def handle_response(response: Any | None) -> None:
            self._under_way = None
            if response is not None:
                self._witness.answered(dial)
            channels.close()
            self.later(self.rng.randint(*_DIAL_PAUSE_MS), self._next)

        request = ApiVersionsRequest(client_software_name="dialer", client_software_version="1")
        channels.to((self._broker, BROKER_PORT)).call(request, _API_VERSIONS_VERSION, _DIAL_MS, handle_response)
