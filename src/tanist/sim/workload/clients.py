"""The base of all clients in the virtual world: real requests over virtual connections, as a client library sends them.

Owns channels to brokers, and the leaders from their Metadata responses; KIP-951's hints only trigger a refresh. The
clients' actions are in `producer`, `readers` and `operations`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tanist.broker.network.channel import Channel, ChannelLogin, Channels
from tanist.ports import Clock, Network
from tanist.sim.workload.history import History
from tanist.sim.world.clock import SimClock, stream
from tanist.sim.world.scheduler import Process
from tanist.sim.world.world import BROKER_PORT, World
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.metadata_response import MetadataResponse

_METADATA_VERSION = 12
BACKOFF_MS = 50
REQUEST_TIMEOUT_MS = 3_000


class SimClient:
    """Channels to brokers, leaders of partitions, and a process that lives as long as the run."""

    def __init__(self, world: World, name: str, history: History, login: ChannelLogin | None = None) -> None:
        """`login`: by what it authenticates."""
        self.world = world
        self.name = name
        self.history = history
        self.rng = stream(world.seed, name)
        self.process = Process(name)
        self.clock: Clock = SimClock(world.scheduler, self.process)
        world.clients.append(name)
        self._network: Network = world.network.view(name, self.process)
        self._channels = Channels(self.clock, self._network, client_id=name, max_frame_bytes=64 << 20, login=login)
        self._brokers: dict[int, tuple[str, int]] = {}
        self._leaders: dict[tuple[str, int], tuple[int, int]] = {}
        """(topic, partition) -> (leader, leader epoch)"""
        self._bootstrap = [(host.name, BROKER_PORT) for host in world.brokers]
        self._next_bootstrap = 0
        self._refreshing = False
        self.stopped = False

    @property
    def now_us(self) -> int:
        return self.world.scheduler.now_us

    def channel(self, address: tuple[str, int]) -> Channel:
        return self._channels.to(address)

    def any_broker(self) -> Channel:
        self._next_bootstrap += 1
        return self.channel(self._bootstrap[self._next_bootstrap % len(self._bootstrap)])

    def leader_of(self, topic: str, partition: int) -> tuple[int, int, Channel] | None:
        known = self._leaders.get((topic, partition))
        if known is None or known[0] not in self._brokers:
            return None
        return known[0], known[1], self.channel(self._brokers[known[0]])

    def refresh(self, topics: Sequence[str]) -> None:
        """Ask any broker for the leaders; several calls at once are one request."""
        if self._refreshing:
            return
        self._refreshing = True
        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=topic) for topic in topics), allow_auto_topic_creation=False
        )

        def answered(response: MetadataResponse | None) -> None:
            self._refreshing = False
            if response is None:
                return
            self._brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
            for topic in response.topics:
                for partition in topic.partitions:
                    key = (topic.name or "", partition.partition_index)
                    known = self._leaders.get(key)
                    if known is None or partition.leader_epoch >= known[1]:
                        self._leaders[key] = (partition.leader_id, partition.leader_epoch)

        self.any_broker().call(request, _METADATA_VERSION, REQUEST_TIMEOUT_MS, answered)

    def later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self.clock.call_at(self.clock.now_ms() + delay_ms, callback)

    def run(self, callback: Callable[[], None]) -> None:
        """Run a callback as this client's process."""
        self.world.scheduler.after(0, callback, self.process)
