"""The nodes of a scripted cluster by their ids: what is known of them, the network between them, requests to them.

Owns the verbs of a script that take no time. They act as machines, networks and clients do, and never change the state
of a node. A verb that lets time pass is in `cluster`; a directed run has the simulator's time (`lab/mutations`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from tanist.broker.node import Node
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.controller.image.image import MetadataImage
from tanist.controller.image.partition_state import PartitionState
from tanist.sim.scripted.holds import Hold
from tanist.sim.workload.clients import SimClient
from tanist.sim.world.scheduler import MICROSECONDS
from tanist.sim.world.world import BROKER_PORT, Host, World
from tanist.wire.messages.fetch_response import FetchResponse


class ScriptedHosts:
    """The hosts of a world, and the client whose requests a script sends."""

    timeout_ms = 20_000
    """How long an answer is waited for."""

    def __init__(self, world: World, client: SimClient) -> None:
        self.world = world
        self.client = client

    # -- nodes

    def host(self, node_id: int) -> Host:
        return self.world.hosts[node_id]

    def node(self, node_id: int) -> Node:
        """The node that runs on a host, or ran on it last. `LookupError` before it has begun."""
        node = self.host(node_id).node
        if node is None:
            raise LookupError(f"node {node_id} has not begun")
        return node

    def controller(self) -> int:
        """The active controller: of those that believe they are it the one of the last epoch. `LookupError` if none."""
        rafts = {node.node_id: node.quorum.raft for node in self.world.nodes()}
        active = [node_id for node_id, raft in rafts.items() if raft.is_leader]
        if not active:
            raise LookupError("there is no active controller")
        return max(active, key=lambda node_id: rafts[node_id].epoch)

    @property
    def image(self) -> MetadataImage:
        """The metadata of the node that runs and has applied most of it."""
        return max(self.world.nodes(), key=lambda node: node.metadata.applied_offset).metadata.image

    def partition(self, topic: str, partition: int = 0) -> PartitionState:
        """A partition in that metadata. `LookupError` if there is none."""
        image = self.image
        return image.topics[image.topic_ids[topic]].partitions[partition]

    def hosted(self, topic: str | UUID, partition: int = 0) -> dict[int, HostedPartition]:
        """The replicas of a partition on the nodes that run, by node id."""
        found = {node.node_id: node.replicas.get(topic, partition) for node in self.world.nodes()}
        return {node_id: hosted for node_id, hosted in found.items() if hosted is not None}

    def leader(self, topic: str | UUID, partition: int = 0) -> int | None:
        """Who leads a partition and knows it: of several the one of the last epoch."""
        leaders = [(h.leader_epoch, n) for n, h in self.hosted(topic, partition).items() if h.leader is not None]
        return max(leaders)[1] if leaders else None

    # -- requests

    def send(
        self,
        request: Any,
        version: int,
        *,
        to: int,
        port: int = BROKER_PORT,
        timeout_ms: int | None = None,
        client: SimClient | None = None,
        heard: Callable[[Any], None] = lambda answer: None,
    ) -> list[Any]:
        """Send a request to a node and do not wait. The list gets the answer: None if the connection ends instead.

        Answers on one connection come in order; a client of its own has one of its own.
        """
        sender = client or self.client
        channel = sender.channel((self.host(to).name, port))
        limit_ms = self.timeout_ms if timeout_ms is None else timeout_ms
        answers: list[Any] = []

        def handle_response(answer: Any) -> None:
            if isinstance(answer, FetchResponse):
                for topic in answer.responses:  # frames are only lent
                    for partition in topic.partitions:
                        partition.records = bytes(partition.records or b"")
            answers.append(answer)
            heard(answer)

        sender.run(lambda: channel.call(request, version, limit_ms, handle_response))
        return answers

    # -- the network

    def block(self, source: int, target: int) -> None:
        """No packet of the source reaches the target."""
        self.world.network.block(self.host(source).name, self.host(target).name)

    def unblock(self, source: int, target: int) -> None:
        """Packets arrive again. Waiting bytes are sent soon, because the connections are new."""
        one, other = self.host(source).name, self.host(target).name
        self.world.network.heal(one, other)
        self.world.network.reset_some(one, other)

    def cut(self, node_id: int, *others: int) -> None:
        """No packet passes between a node and each of the others."""
        for other in others:
            self.block(node_id, other)
            self.block(other, node_id)

    def isolate(self, node_id: int) -> None:
        """No packet passes between a node and anybody else, clients included."""
        name = self.host(node_id).name
        for other in (*(host.name for host in self.world.hosts.values()), *self.world.clients):
            if other != name:
                self.world.network.block(name, other)
                self.world.network.block(other, name)

    def join(self, node_id: int, *others: int) -> None:
        """`unblock` both ways."""
        for other in others:
            self.unblock(node_id, other)
            self.unblock(other, node_id)

    def heal(self) -> None:
        """All packets arrive; waiting bytes are sent when their connections try again."""
        self.world.network.heal()

    def reset(self, one: int, other: int) -> None:
        """The connections between the two break, and bytes under way are lost."""
        self.world.network.reset_some(self.host(one).name, self.host(other).name)

    def slow(self, source: int, target: int, latency_ms: int) -> None:
        self.world.network.conditions.slow_links[(self.host(source).name, self.host(target).name)] = (
            latency_ms * MICROSECONDS
        )

    def quick(self, source: int, target: int) -> None:
        self.world.network.conditions.slow_links.pop((self.host(source).name, self.host(target).name), None)

    def narrow(self, source: int, target: int, window_bytes: int = 0) -> None:
        """So many bytes may be on their way; the rest waits at the sender."""
        windows = self.world.network.conditions.windows
        windows[self.host(source).name, self.host(target).name] = window_bytes

    def widen(self, source: int, target: int) -> None:
        """What waits is sent, as the reader takes it."""
        self.world.network.conditions.windows.pop((self.host(source).name, self.host(target).name), None)

    def hold(self, reader: int, sender: int, client: str = "") -> Hold:
        """The reader does not read bytes of the sender until `release`. `client`: only those of this client id."""
        return Hold(self.world, self.host(reader).name, self.host(sender).name, client)

    def hold_answers(self, follower: int, leader: int) -> Hold:
        """The follower does not read the leader's answers to its fetches."""
        return self.hold(follower, leader, f"broker-{follower}-fetcher")

    def hold_fetches(self, follower: int, leader: int) -> Hold:
        """The leader does not read the follower's fetches."""
        return self.hold(leader, follower, f"broker-{follower}-fetcher")

    def release_all(self) -> None:
        """End all holds."""
        for watcher in list(self.world.watchers):
            if isinstance(watcher, Hold):
                watcher.release()
