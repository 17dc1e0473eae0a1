"""A cluster in virtual time with a client that asks and waits: for tests of what the nodes answer."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tanist.broker.logins import ChannelLogin
from tanist.broker.metadata.bootstrap import FILE_NAME, bootstrap_of, encode_bootstrap
from tanist.broker.node import Node
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.events.event import Event
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.scheduler import Process
from tanist.sim.world.world import BROKER_PORT, DATA, Host, Watcher, World
from tanist.wire.batch import NewRecord, decode_batch, encode_batch, iterate_batches
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData

EventT = TypeVar("EventT", bound=Event)


TLS_BETWEEN_CONTROLLERS: Mapping[str, str] = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
    "ssl.keystore.location": "/node.pem",
}
"""Clients need none."""


class _Listener(Watcher):
    def __init__(self, events: list[Event]) -> None:
        self._events = events

    def observed(self, host: Host, event: Event) -> None:
        self._events.append(event)


class Cluster:
    """`nodes` combined nodes, started and ready."""

    def __init__(
        self,
        *,
        nodes: int = 3,
        seed: int = 1,
        config: Mapping[str, str] | None = None,
        per_node: Mapping[int, Mapping[str, str]] | None = None,
        features: Mapping[str, int] | None = None,
        login: ChannelLogin | None = None,
        tls: bool = False,
    ) -> None:
        """`login`: by what the client authenticates. `tls`: it dials by TLS."""
        self.log: list[str] = []
        """The lines of operators, of faults and of nodes."""
        self.events: list[Event] = []
        """Of all nodes."""
        self.world = World(seed, nodes=nodes, config=config, trace=self._trace)
        self.world.watchers.append(_Listener(self.events))
        if features is not None:
            content = encode_bootstrap(bootstrap_of(features), wall_ms=0)
            for host in self.world.hosts.values():
                host.disk.view(Process("format")).write_file(f"{DATA}/{FILE_NAME}", content)
        for node_id, more in (per_node or {}).items():
            self.world.hosts[node_id].properties.update(more)
        self.world.start()
        self.until(self.world.ready)
        self.client = SimClient(self.world, "client", History(), login, tls=tls)

    def seen(self, kind: type[EventT]) -> list[EventT]:
        """The events of this kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def _trace(self, _us: int, who: str, level: str, message: str) -> None:
        self.log.append(f"{who} {level} {message}")

    def node(self, node_id: int) -> Node:
        node = self.world.hosts[node_id].node
        if node is None:
            raise KeyError(node_id)
        return node

    def until(self, condition: Callable[[], bool], within_ms: int = 30_000) -> None:
        assert self.world.run_until(condition, within_ms=within_ms), "it does not come true"

    def run(self, ms: int) -> None:
        self.world.run_for(ms)

    def ask(self, request: Any, version: int, *, to: int = 1, timeout_ms: int = 20_000, port: int = BROKER_PORT) -> Any:
        """Send a request to a node and wait for the answer; None if the connection ends instead."""
        answers: list[Any] = []
        address = (self.world.hosts[to].name, port)

        def handle_response(response: Any) -> None:
            if isinstance(response, FetchResponse):
                for topic in response.responses:  # frames are only lent
                    for partition in topic.partitions:
                        partition.records = bytes(partition.records or b"")
            answers.append(response)

        self.client.run(lambda: self.client.channel(address).call(request, version, timeout_ms, handle_response))
        self.until(lambda: bool(answers), timeout_ms + 1_000)
        return answers[0]

    def asked_by(
        self, login: ChannelLogin | None, *, to: int = 1, port: int = BROKER_PORT, tls: bool = False, name: str = ""
    ) -> str | None:
        """As whom a node knows a client that logs in so, and asks for the APIs; None: it does not let it in."""
        client = SimClient(self.world, name or f"client-{len(self.world.clients)}", History(), login, tls=tls)
        answers: list[Any] = []
        channel = client.channel((self.world.hosts[to].name, port))
        client.run(lambda: channel.call(ApiVersionsRequest(), 4, 5_000, answers.append))
        self.until(lambda: bool(answers))
        known = [each for each in self.node(to).components.connections if each.client_id == client.name]
        channel.close()
        return str(known[0].session.principal) if answers[0] is not None else None

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        factor: int = 3,
        assignment: Sequence[Sequence[int]] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions if assignment is None else -1,
            replication_factor=factor if assignment is None else -1,
            assignments=tuple(
                CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
                for index, brokers in enumerate(assignment or ())
            ),
            configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()),
        )
        response = self.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
        assert response.topics[0].error_code == 0, response
        self.until(lambda: self.leader(name, 0) is not None)

    def hosted(self, topic: str, partition: int = 0) -> dict[int, HostedPartition]:
        """The replicas of a partition on the nodes that run, by node id."""
        found = {node.node_id: node.replicas.get(topic, partition) for node in self.world.nodes()}
        return {node_id: hosted for node_id, hosted in found.items() if hosted is not None}

    def leader(self, topic: str, partition: int = 0) -> int | None:
        leaders = [(h.leader_epoch, n) for n, h in self.hosted(topic, partition).items() if h.leader is not None]
        return max(leaders)[1] if leaders else None

    def produce(
        self,
        topic: str,
        values: Sequence[bytes],
        *,
        partition: int = 0,
        acks: int = -1,
        to: int | None = None,
        version: int = 9,
        timeout_ms: int = 2_000,
        **batch: Any,
    ) -> Any:
        """Produce one batch; the partition's answer, or None if the connection ended."""
        leader = self.leader(topic, partition) if to is None else to
        wall_ms = self.client.clock.wall_ms()
        records = encode_batch([NewRecord(timestamp=wall_ms, key=None, value=value) for value in values], **batch)
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=(
                TopicProduceData(
                    name=topic, partition_data=(PartitionProduceData(index=partition, records=bytes(records)),)
                ),
            ),
        )
        response = self.ask(request, version, to=leader or 1)
        return None if response is None else response.responses[0].partition_responses[0]

    def fetch(
        self,
        topic: str,
        offset: int = 0,
        *,
        partition: int = 0,
        to: int | None = None,
        version: int = 12,
        max_wait_ms: int = 0,
        rack_id: str = "",
    ) -> Any:
        """The partition's answer to a consumer's fetch."""
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            rack_id=rack_id,
            topics=(
                FetchTopic(
                    topic=topic,
                    partitions=(
                        FetchPartition(
                            partition=partition,
                            current_leader_epoch=-1,
                            fetch_offset=offset,
                            last_fetched_epoch=-1,
                            partition_max_bytes=1 << 20,
                        ),
                    ),
                ),
            ),
        )
        leader = self.leader(topic, partition) if to is None else to
        response = self.ask(request, version, to=leader or 1)
        if response is None:  # a connection from before the node's last life
            response = self.ask(request, version, to=leader or 1)
        return response.responses[0].partitions[0]

    def values(self, topic: str, *, partition: int = 0, to: int | None = None) -> list[bytes]:
        """All committed values of a partition, as a consumer reads them."""
        found: list[bytes] = []
        offset = 0
        while True:
            answer = self.fetch(topic, offset, partition=partition, to=to)
            assert answer.error_code == 0, answer
            if not answer.records:
                return found
            for header, batch in iterate_batches(answer.records):
                found += [bytes(record.value or b"") for record in decode_batch(batch)]
                offset = header.next_offset


def put(cluster: Cluster, topic: str, key: bytes | None, value: bytes | None, **how: Any) -> Any:
    """Produce one record; the partition's answer."""
    wall_ms = cluster.client.clock.wall_ms()
    records = bytes(encode_batch([NewRecord(timestamp=how.pop("timestamp", wall_ms), key=key, value=value)], **how))
    data = (TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),)),)
    request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=data)
    response = cluster.ask(request, 9, to=cluster.leader(topic) or 1)
    return response.responses[0].partition_responses[0]


def out_of_descriptors(host: Host, folder: str) -> Callable[[], None]:
    """From now on no file below the folder can be opened; gives what ends that."""
    check = host.disk.check

    def short(path: str, *, writing: bool = False) -> None:
        if path.startswith(folder):
            raise OSError(errno.EMFILE, "Too many open files", path)
        check(path, writing=writing)

    host.disk.check = short  # type: ignore[method-assign]

    def enough() -> None:
        host.disk.check = check  # type: ignore[method-assign]

    return enough
