"""`AsyncCluster`: the same cluster for asyncio. Each operation runs in a thread, and the loop goes on.

Written by tools/generate_aio.py; do not edit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tanist.events.event import Event as KindOfEvent
from tanist.runtime.cluster.node_events import NodeEvent
from tanist.runtime.faults.settings import DiskState
from tanist.testing.cluster import Cluster
from tanist.testing.conditions import Condition
from tanist.testing.history import Event
from tanist.testing.namespace import Kafka
from tanist.testing.observations import PartitionState, SalvageEntry
from tanist.testing.operations import Lost, Member, Operations
from tanist.testing.request_faults import InjectedFault, RequestFaultBuilder
from tanist.testing.security import ClientKind, Security
from tanist.wire.batch import Record


class AsyncInjectedFault:
    """`InjectedFault`, awaited."""

    sync: InjectedFault
    """The same without asyncio."""

    def __init__(self, fault: InjectedFault) -> None:
        self.sync = fault

    @property
    def calls(self) -> int:
        """How many requests it was about, on all nodes."""
        return self.sync.calls

    @property
    def hits(self) -> int:
        """To how many of them it has happened."""
        return self.sync.hits

    async def wait_for_hits(self, number: int = 1, timeout: float = 30.0) -> None:
        """Wait until it has happened so often. `NotInTime`."""
        await asyncio.to_thread(self.sync.wait_for_hits, number, timeout)

    async def remove(self) -> None:
        """End it. The counts stay readable."""
        await asyncio.to_thread(self.sync.remove)

    async def __aenter__(self) -> AsyncInjectedFault:
        await asyncio.to_thread(self.sync.__enter__)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.sync.__exit__, *_)

    def __str__(self) -> str:
        return self.sync.__str__()


class AsyncRequestFaultBuilder:
    """`RequestFaultBuilder`, whose triggers are awaited."""

    sync: RequestFaultBuilder
    """The same without asyncio."""

    def __init__(self, builder: RequestFaultBuilder) -> None:
        self.sync = builder

    def of_client(self, client_id: str) -> AsyncRequestFaultBuilder:
        """Only for clients whose id has this in it."""
        return AsyncRequestFaultBuilder(self.sync.of_client(client_id))

    def including_nodes(self) -> AsyncRequestFaultBuilder:
        """Also for requests between nodes, and of tanist's own tools."""
        return AsyncRequestFaultBuilder(self.sync.including_nodes())

    async def once(self) -> AsyncInjectedFault:
        """At the next call, whichever broker it comes to."""
        return AsyncInjectedFault(await asyncio.to_thread(self.sync.once))

    async def on_call(self, number: int) -> AsyncInjectedFault:
        """At this call from now on, counted from 1."""
        return AsyncInjectedFault(await asyncio.to_thread(self.sync.on_call, number))

    async def times(self, number: int) -> AsyncInjectedFault:
        """At each of the next so many calls."""
        return AsyncInjectedFault(await asyncio.to_thread(self.sync.times, number))

    async def every_time(self) -> AsyncInjectedFault:
        """At each call."""
        return AsyncInjectedFault(await asyncio.to_thread(self.sync.every_time))

    async def with_probability(self, probability: float) -> AsyncInjectedFault:
        """At each call with this probability."""
        return AsyncInjectedFault(await asyncio.to_thread(self.sync.with_probability, probability))


class AsyncSecurity:
    """`Security`, awaited."""

    sync: Security
    """The same without asyncio."""

    def __init__(self, security: Security) -> None:
        self.sync = security

    def client(self, kind: ClientKind = "librdkafka", user: str = "app") -> dict[str, str]:
        """The settings by which a client gets in as this user, bootstrap.servers included.

        `app` may use what begins with `app`, `admin` everything; others are those of `add_user`. "librdkafka" is for
        confluent-kafka too.
        """
        return self.sync.client(kind, user)

    async def add_user(self, user: str, password: str) -> None:
        """Make a user, or give one another password. It may do nothing yet: `allow`."""
        await asyncio.to_thread(self.sync.add_user, user, password)

    async def revoke(self, user: str) -> None:
        """Nobody gets in as this user any more; connections that it has stay."""
        await asyncio.to_thread(self.sync.revoke, user)

    async def allow(self, principal: str, operation: str, resource: str) -> None:
        """Let a principal do something: `allow("User:alice", "WRITE", "topic:orders")`.

        A resource is `topic:NAME`, `group:NAME`, `transactional-id:NAME` or `cluster`; a name that ends in `*` is a
        prefix. A denial of the same is taken back.
        """
        await asyncio.to_thread(self.sync.allow, principal, operation, resource)

    async def deny(self, principal: str, operation: str, resource: str) -> None:
        """Deny a principal something, whatever allows it: `deny("User:app", "READ", "topic:app-orders")`."""
        await asyncio.to_thread(self.sync.deny, principal, operation, resource)

    async def throttle(self, user: str, **quotas: float | None) -> None:
        """Give a user quotas: `throttle("app", producer_byte_rate=1000)`; None removes one."""
        await asyncio.to_thread(self.sync.throttle, user, **quotas)

    async def expire_certificate(self, broker: int) -> None:
        """The broker's certificate has expired: handshakes fail from now on, connections stay. `rotate_certificates`
        ends it."""
        await asyncio.to_thread(self.sync.expire_certificate, broker)

    async def rotate_certificates(self) -> None:
        """Each node has a new certificate of the same authority, and shows it to who comes from now on."""
        await asyncio.to_thread(self.sync.rotate_certificates)


class AsyncOperations:
    """`Operations`, awaited."""

    sync: Operations
    """The same without asyncio."""

    def __init__(self, operations: Operations) -> None:
        self.sync = operations

    @property
    def bootstrap(self) -> str:
        """`host:port,host:port` of every broker: what clients take as bootstrap.servers."""
        return self.sync.bootstrap

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers; of another Kafka, of those that are alive."""
        return self.sync.brokers

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids of brokers and of controllers in processes of their own."""
        return self.sync.nodes

    @property
    def data(self) -> Path:
        """The data folder, for the commands of `tanist` (`--data`)."""
        return self.sync.data

    @property
    def down(self) -> tuple[int, ...]:
        """The nodes that do not run."""
        return self.sync.down

    async def crash(self, *nodes: int, lose: Lost = None) -> None:
        """Kill nodes with SIGKILL: they flush nothing. `lose="page-cache"`: they lose what was not synced."""
        await asyncio.to_thread(self.sync.crash, *nodes, lose=lose)

    async def stop(self, *nodes: int) -> None:
        """Shut nodes down cleanly: they hand their leaderships over. Returns when their processes have ended."""
        await asyncio.to_thread(self.sync.stop, *nodes)

    async def start(self, *nodes: int) -> None:
        """Start nodes that are down, all of them by default; returns when they take part in the cluster again."""
        await asyncio.to_thread(self.sync.start, *nodes)

    async def pause(self, *nodes: int) -> None:
        """Freeze nodes (SIGSTOP): their connections stay open."""
        await asyncio.to_thread(self.sync.pause, *nodes)

    async def resume(self, *nodes: int) -> None:
        """Let paused nodes go on, all of them by default."""
        await asyncio.to_thread(self.sync.resume, *nodes)

    async def partition(
        self, a: Iterable[Member], b: Iterable[Member] | None = None, *, one_way: bool = False, clients: bool = False
    ) -> None:
        """Cut the links between two groups of nodes. Without `b`, between `a` and all other nodes.

        `"clients"` in a group means everything that is not a node; `clients=True` puts it on the side of `a`, or on the
        other side if only `a` is named. `one_way`: only what `a` sends is lost.
        """
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
        """Make the links between two groups of nodes slow. Latency is each way, jitter on top, the rate a second's."""
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
        self, node: int, state: DiskState, *, log_dir: str | None = None, latency_s: float = 0.1, writes: bool = False
    ) -> None:
        """Make a node's disk, or one of its log directories, full, failed, slow or read-only.

        full: Fail what needs space on a disk (ENOSPC). failed: Fail every access to the disk (EIO).
        read-only: Fail every change to the disk (EROFS). slow: Let each sync take longer. By `latency_s`; with
        `writes` each write, too.
        """
        await asyncio.to_thread(self.sync.disk, node, state, log_dir=log_dir, latency_s=latency_s, writes=writes)

    def inject_error(self, api: str, error: str, *, after: bool | None = None) -> AsyncRequestFaultBuilder:
        """Answer requests of an API with an error: `inject_error("PRODUCE", "NOT_ENOUGH_REPLICAS")`.

        By default as Kafka does it: nearly all errors refuse the request, which then has no effect, and those that
        Kafka gives afterwards (REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND) are given when it is carried out.
        `after` says otherwise: True carries it out, False does not.
        `.once()`, `.on_call(n)`, `.times(n)`, `.every_time()` or `.with_probability(p)` sets it.
        """
        return AsyncRequestFaultBuilder(self.sync.inject_error(api, error, after=after))

    def delay_on(self, api: str, seconds: float) -> AsyncRequestFaultBuilder:
        """Hold answers back. The requests are carried out; all that follows on the connection waits, too."""
        return AsyncRequestFaultBuilder(self.sync.delay_on(api, seconds))

    def disconnect_on(self, api: str) -> AsyncRequestFaultBuilder:
        """End the connection in place of the answer. The request is carried out."""
        return AsyncRequestFaultBuilder(self.sync.disconnect_on(api))

    def blackhole_client(self, client_id: str) -> AsyncRequestFaultBuilder:
        """Drop the requests of some clients: those whose id has this in it."""
        return AsyncRequestFaultBuilder(self.sync.blackhole_client(client_id))

    async def heal(self, *members: Member) -> None:
        """End all faults of links, disks and requests, and resume what is paused; or only those of some nodes."""
        await asyncio.to_thread(self.sync.heal, *members)

    async def faults(self) -> list[str]:
        """The faults that are in force, a sentence each."""
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
        """Create a topic and wait until its partitions have leaders; gives its name.

        `replicas`: -1 is the cluster's default. `assignment` places the replicas of each partition instead.
        """
        return await asyncio.to_thread(
            self.sync.create_topic, name, partitions=partitions, replicas=replicas, assignment=assignment, config=config
        )

    async def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        await asyncio.to_thread(self.sync.delete_topic, name)

    async def topics(self) -> list[str]:
        """The names of all topics but Kafka's internal ones."""
        return await asyncio.to_thread(self.sync.topics)

    async def partition_state(self, topic: str, partition: int = 0) -> PartitionState:
        """Leader, epoch, replicas, ISR, ELR, LastKnownElr and offsets of a partition now; each replica's log end."""
        return await asyncio.to_thread(self.sync.partition_state, topic, partition)

    async def partition_states(self, topic: str) -> list[PartitionState]:
        """The state of every partition of a topic."""
        return await asyncio.to_thread(self.sync.partition_states, topic)

    async def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """What consumers can read: all records of a topic, or of one partition, in the order of their offsets."""
        return await asyncio.to_thread(self.sync.records, topic, partition)

    async def salvage(self, topic: str | None = None) -> list[SalvageEntry]:
        """What replicas have dropped and saved before, with the records; of one topic or of all, the oldest first."""
        return await asyncio.to_thread(self.sync.salvage, topic)

    async def events(
        self, kind: type[KindOfEvent] | None = None, *, topic: str | None = None, **fields: object
    ) -> list[NodeEvent]:
        """What the nodes have decided and seen so far, by time: of one kind, of one topic, with these fields.

        await kafka.events(LeaderElected, topic="orders", leader=2)

        The kinds are in `tanist.events`. Those of records and fetches come only where `tanist.events.fine` is true.
        """
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
        """Wait for an event, and give it: the first such one, or the first after another one. `NotInTime`.

        await kafka.wait_for(LeaderElected, partition="orders-0", leader=2)
        """
        return await asyncio.to_thread(self.sync.wait_for, kind, topic=topic, after=after, timeout=timeout, **fields)

    async def happened(self, *topics: str) -> list[Event]:
        """What happened to the partitions of these topics and what was done to the cluster, as one sequence."""
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
        """Wait until a condition holds: `led(topic)`, `in_sync(topic)`, any function, or `topic=..., isr=2, leader=1`.

        `NotInTime` after `timeout` seconds; its text says what was missing last.
        """
        await asyncio.to_thread(
            self.sync.wait_until, condition, topic=topic, partition=partition, isr=isr, leader=leader, timeout=timeout
        )

    def security(self) -> AsyncSecurity:
        """Client settings, users, permissions and certificates of a cluster that was made with `secure=True`."""
        return AsyncSecurity(self.sync.security())


class AsyncCluster(AsyncOperations):
    """`Cluster` as an asynchronous context manager."""

    sync: Cluster
    """The same without asyncio."""

    def __init__(
        self,
        brokers: int = 3,
        controllers: int = 0,
        config: Mapping[str, str] | None = None,
        *,
        log_dirs: int = 1,
        secure: bool = False,
        features: Mapping[str, int] | None = None,
        folder: Path | str | None = None,
    ) -> None:
        """`controllers` 0: brokers are controllers too. `config`: Kafka's settings, for every node.
        `secure`: with TLS, users and ACLs; `security()` has what clients need.

        With a `folder` the cluster stays: it is started there, or used if it runs already, and `close` leaves it alone.
        """
        self.sync = Cluster(
            brokers, controllers, config, log_dirs=log_dirs, secure=secure, features=features, folder=folder
        )

    @classmethod
    async def connect(cls, bootstrap: str) -> AsyncCluster:
        """Any other Kafka: the same object, where faults raise `NotAvailable`. `bootstrap` is `host:port,...`."""
        found = cls()
        found.sync = await asyncio.to_thread(Cluster.connect, bootstrap)
        return found

    @property
    def folder(self) -> Path | None:
        """Where a cluster stays that is kept; None of any other."""
        return self.sync.folder

    async def __aenter__(self) -> AsyncCluster:
        await asyncio.to_thread(self.sync.__enter__)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.sync.__exit__, *_)

    async def open(self) -> None:
        """Start the cluster; returns when it is ready."""
        await asyncio.to_thread(self.sync.open)

    async def close(self) -> None:
        """Stop the cluster and remove its folder, unless it is to be kept. Harmless when it is closed already."""
        await asyncio.to_thread(self.sync.close)

    async def keep(self) -> Path:
        """Keep the data folder when the cluster is closed: `tanist up --data` and `tanist salvage` can read it."""
        return await asyncio.to_thread(self.sync.keep)

    async def reset(self) -> None:
        """Make the cluster what it was when it was new: the same nodes and ports, no topics."""
        await asyncio.to_thread(self.sync.reset)


class AsyncKafka(AsyncOperations):
    """`Kafka`, awaited: the cluster as one test sees it."""

    sync: Kafka
    """The same without asyncio."""

    def __init__(self, kafka: Kafka) -> None:
        self.sync = kafka

    def topic(self, name: str) -> str:
        """A topic's name that no other test has; the same for the same `name`. `create_topic` creates it."""
        return self.sync.topic(name)

    def group(self, name: str) -> str:
        """A group's name that no other test has; the same for the same `name`."""
        return self.sync.group(name)
