"""`AsyncCluster`: the same cluster for asyncio. Each operation runs in a thread, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tanist.events.event import Event as KindOfEvent
from tanist.runtime.cluster.node_events import NodeEvent
from tanist.testing.cluster import Cluster
from tanist.testing.conditions import Condition
from tanist.testing.history import Event
from tanist.testing.namespace import Kafka
from tanist.testing.observations import PartitionState, SalvageEntry
from tanist.testing.operations import DiskState, Lost, Member, Operations
from tanist.testing.request_faults import InjectedFault, RequestFaultBuilder
from tanist.wire.batch import Record


class AsyncInjectedFault:
    """`InjectedFault`, awaited."""

    def __init__(self, fault: InjectedFault) -> None:
        self.sync = fault

    @property
    def calls(self) -> int:
        return self.sync.calls

    @property
    def hits(self) -> int:
        return self.sync.hits

    async def wait_for_hits(self, number: int = 1, timeout: float = 30.0) -> None:
        await asyncio.to_thread(self.sync.wait_for_hits, number, timeout)

    async def remove(self) -> None:
        await asyncio.to_thread(self.sync.remove)


class AsyncRequestFaultBuilder:
    """`RequestFaultBuilder`, whose triggers are awaited."""

    def __init__(self, builder: RequestFaultBuilder) -> None:
        self._builder = builder

    def of_client(self, client_id: str) -> AsyncRequestFaultBuilder:
        return AsyncRequestFaultBuilder(self._builder.of_client(client_id))

    def including_nodes(self) -> AsyncRequestFaultBuilder:
        return AsyncRequestFaultBuilder(self._builder.including_nodes())

    async def once(self) -> AsyncInjectedFault:
        return AsyncInjectedFault(await asyncio.to_thread(self._builder.once))

    async def on_call(self, number: int) -> AsyncInjectedFault:
        return AsyncInjectedFault(await asyncio.to_thread(self._builder.on_call, number))

    async def times(self, number: int) -> AsyncInjectedFault:
        return AsyncInjectedFault(await asyncio.to_thread(self._builder.times, number))

    async def every_time(self) -> AsyncInjectedFault:
        return AsyncInjectedFault(await asyncio.to_thread(self._builder.every_time))

    async def with_probability(self, probability: float) -> AsyncInjectedFault:
        return AsyncInjectedFault(await asyncio.to_thread(self._builder.with_probability, probability))


class AsyncOperations:
    """`Operations`, awaited."""

    def __init__(self, operations: Operations) -> None:
        self.sync = operations
        """The same cluster without asyncio."""

    @property
    def bootstrap(self) -> str:
        """`host:port,host:port` of every broker."""
        return self.sync.bootstrap

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return self.sync.brokers

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.sync.data

    async def crash(self, *nodes: int, lose: Lost = None) -> None:
        await asyncio.to_thread(self.sync.crash, *nodes, lose=lose)

    async def stop(self, *nodes: int) -> None:
        await asyncio.to_thread(self.sync.stop, *nodes)

    async def start(self, *nodes: int) -> None:
        await asyncio.to_thread(self.sync.start, *nodes)

    async def pause(self, *nodes: int) -> None:
        await asyncio.to_thread(self.sync.pause, *nodes)

    async def resume(self, *nodes: int) -> None:
        await asyncio.to_thread(self.sync.resume, *nodes)

    async def partition(
        self, a: Iterable[Member], b: Iterable[Member] | None = None, *, one_way: bool = False, clients: bool = False
    ) -> None:
        await asyncio.to_thread(self.sync.partition, a, b, one_way=one_way, clients=clients)

    async def slow(
        self,
        a: Iterable[Member],
        b: Iterable[Member] | None = None,
        *,
        latency_s: float = 0.0,
        jitter_s: float = 0.0,
        rate_bytes: int = 0,
        one_way: bool = False,
        clients: bool = False,
    ) -> None:
        await asyncio.to_thread(
            self.sync.slow,
            a,
            b,
            latency_s=latency_s,
            jitter_s=jitter_s,
            rate_bytes=rate_bytes,
            one_way=one_way,
            clients=clients,
        )

    async def disk(
        self,
        node: int,
        state: DiskState,
        *,
        log_dir: str | None = None,
        latency_s: float = 0.1,
        writes: bool = False,
    ) -> None:
        await asyncio.to_thread(self.sync.disk, node, state, log_dir=log_dir, latency_s=latency_s, writes=writes)

    def inject_error(self, api: str, error: str, *, after: bool | None = None) -> AsyncRequestFaultBuilder:
        return AsyncRequestFaultBuilder(self.sync.inject_error(api, error, after=after))

    def delay_on(self, api: str, seconds: float) -> AsyncRequestFaultBuilder:
        return AsyncRequestFaultBuilder(self.sync.delay_on(api, seconds))

    def disconnect_on(self, api: str) -> AsyncRequestFaultBuilder:
        return AsyncRequestFaultBuilder(self.sync.disconnect_on(api))

    def blackhole_client(self, client_id: str) -> AsyncRequestFaultBuilder:
        return AsyncRequestFaultBuilder(self.sync.blackhole_client(client_id))

    async def heal(self, *members: Member) -> None:
        await asyncio.to_thread(self.sync.heal, *members)

    async def faults(self) -> list[str]:
        return await asyncio.to_thread(self.sync.faults)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int = -1,
        assignment: Iterable[Iterable[int]] = (),
        config: Mapping[str, str] | None = None,
    ) -> str:
        return await asyncio.to_thread(
            self.sync.create_topic,
            name,
            partitions=partitions,
            replicas=replicas,
            assignment=assignment,
            config=config,
        )

    async def delete_topic(self, name: str) -> None:
        await asyncio.to_thread(self.sync.delete_topic, name)

    async def topics(self) -> list[str]:
        return await asyncio.to_thread(self.sync.topics)

    async def partition_state(self, topic: str, partition: int = 0) -> PartitionState:
        return await asyncio.to_thread(self.sync.partition_state, topic, partition)

    async def partition_states(self, topic: str) -> list[PartitionState]:
        return await asyncio.to_thread(self.sync.partition_states, topic)

    async def records(self, topic: str, partition: int | None = None) -> list[Record]:
        return await asyncio.to_thread(self.sync.records, topic, partition)

    async def salvage(self, topic: str | None = None) -> list[SalvageEntry]:
        return await asyncio.to_thread(self.sync.salvage, topic)

    async def events(
        self, kind: type[KindOfEvent] | None = None, *, topic: str | None = None, **fields: object
    ) -> list[NodeEvent]:
        return await asyncio.to_thread(self.sync.events, kind, topic=topic, **fields)

    async def wait_for(
        self,
        kind: type[KindOfEvent],
        *,
        topic: str | None = None,
        after: NodeEvent | None = None,
        timeout: float = 30.0,
        **fields: object,
    ) -> NodeEvent:
        return await asyncio.to_thread(self.sync.wait_for, kind, topic=topic, after=after, timeout=timeout, **fields)

    async def happened(self, *topics: str) -> list[Event]:
        return await asyncio.to_thread(self.sync.happened, *topics)

    async def wait_until(
        self,
        condition: Condition | Callable[[], object] | None = None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        isr: int | None = None,
        leader: int | None = None,
        timeout: float = 30.0,
    ) -> None:
        await asyncio.to_thread(
            self.sync.wait_until,
            condition,
            topic=topic,
            partition=partition,
            isr=isr,
            leader=leader,
            timeout=timeout,
        )


class AsyncCluster(AsyncOperations):
    """`Cluster` as an asynchronous context manager."""

    def __init__(
        self,
        brokers: int = 3,
        controllers: int = 0,
        config: Mapping[str, str] | None = None,
        *,
        log_dirs: int = 1,
        features: Mapping[str, int] | None = None,
        folder: Path | str | None = None,
    ) -> None:
        self._cluster = Cluster(brokers, controllers, config, log_dirs=log_dirs, features=features, folder=folder)
        super().__init__(self._cluster)

    async def __aenter__(self) -> AsyncCluster:
        await asyncio.to_thread(self._cluster.open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._cluster.close)

    async def keep(self) -> Path:
        return await asyncio.to_thread(self._cluster.keep)

    async def reset(self) -> None:
        await asyncio.to_thread(self._cluster.reset)


class AsyncKafka(AsyncOperations):
    """`Kafka`, awaited: the cluster as one test sees it."""

    def __init__(self, kafka: Kafka) -> None:
        super().__init__(kafka)
        self._kafka = kafka

    def topic(self, name: str) -> str:
        """A topic's name that no other test has."""
        return self._kafka.topic(name)

    def group(self, name: str) -> str:
        """A group's name that no other test has."""
        return self._kafka.group(name)
