"""What a test does to a cluster and asks of it: the same on a cluster of its own, on a test's view of it, and on any
other Kafka, where each fault that cannot be had raises `NotAvailable`.

Every operation on a node does what the command of its name does (`tanist crash`, `partition`, `slow` and so on) and
returns when it is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tanist.events.event import Event as KindOfEvent
from tanist.runtime.client import admin
from tanist.runtime.client.client import Address, Client, format_bootstrap
from tanist.runtime.cluster import cluster as runtime
from tanist.runtime.cluster.addresses import client_of
from tanist.runtime.cluster.cluster_file import ClusterError, ClusterFile, load_existing
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.cluster.node_events import NodeEvent
from tanist.runtime.faults.request_rules import RequestFault, api_key_of, error_code_of, error_fault
from tanist.runtime.faults.settings import CLIENTS, BadDisk, DiskState, Fault, Partition, Side, Slow
from tanist.testing import history, node_events, observations
from tanist.testing.conditions import Condition, wait_for, wait_for_true
from tanist.testing.errors import NotAvailable, as_cluster_errors
from tanist.testing.history import Event
from tanist.testing.observations import PartitionState, SalvageEntry
from tanist.testing.request_faults import InjectedFault, RequestFaultBuilder
from tanist.testing.security import Security
from tanist.wire.batch import Record

CLIENT_ID = "tanist"
"""Requests of this client are left out of faults by request, as those of all tools are."""

Member: TypeAlias = int | Literal["clients"]
"""A node id, or every client."""
Lost: TypeAlias = Literal["page-cache"] | None

_PATIENCE_S = 30.0


@dataclass(slots=True)
class Backend:
    """The cluster behind the operations."""

    bootstrap: tuple[Address, ...]
    local: runtime.LocalCluster | None = None
    """None: a Kafka that was not started here."""
    did: list[Event] = field(default_factory=list)
    """What was done to it, for reports."""
    refused: set[str] = field(default_factory=set)
    """The operations that were not to be had."""


class Operations:
    """Everything that can be done to a cluster, and asked of it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def backend(self) -> Backend:
        """The cluster behind this object, which a namespace shares."""
        return self._backend

    # -- what it is

    @property
    def bootstrap(self) -> str:
        """`host:port,host:port` of every broker: what clients take as bootstrap.servers."""
        return format_bootstrap(self._addresses())

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers; of another Kafka, of those that are alive."""
        if self._backend.local is not None:
            return tuple(node.node_id for node in self._file().brokers)
        with as_cluster_errors("brokers"), self._client() as client:
            return tuple(sorted(client.metadata(()).brokers))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids of brokers and of controllers in processes of their own."""
        self._need("nodes", "list controllers")
        return tuple(node.node_id for node in self._file().nodes)

    @property
    def data(self) -> Path:
        """The data folder, for the commands of `tanist` (`--data`)."""
        return self._need("data", "show its folder").folder

    @property
    def down(self) -> tuple[int, ...]:
        """The nodes that do not run."""
        self._need("down", "say which nodes run")
        return tuple(node.node_id for node in self._file().nodes if not node.alive)

    # -- nodes

    def crash(self, *nodes: int, lose: Lost = None) -> None:
        """Kill nodes with SIGKILL: they flush nothing. `lose="page-cache"`: they lose what was not synced."""
        if lose not in (None, "page-cache"):
            raise ValueError(f'crash: lose is None or "page-cache", not {lose!r}')
        cluster = self._need("crash", "kill a node")
        listed = ", ".join(map(str, _named("crash", nodes)))
        self._note(f"crash({listed})" if lose is None else f"crash({listed}, lose={lose!r})")
        for node in nodes:
            cluster.crash(node, lose_page_cache=lose is not None)

    def stop(self, *nodes: int) -> None:
        """Shut nodes down cleanly: they hand their leaderships over. Returns when their processes have ended."""
        cluster = self._need("stop", "stop a node")
        self._note(f"stop({', '.join(map(str, _named('stop', nodes)))})")
        for node in nodes:
            cluster.stop(node)

    def start(self, *nodes: int) -> None:
        """Start nodes that are down, all of them by default; returns when they take part in the cluster again."""
        cluster = self._need("start", "start a node")
        if chosen := nodes or self.down:
            self._note(f"start({', '.join(map(str, chosen))})")
            cluster.start(*chosen)

    def pause(self, *nodes: int) -> None:
        """Freeze nodes (SIGSTOP): their connections stay open."""
        orders = self._orders("pause", "freeze a node")
        for node in _named("pause", nodes):
            self._note(f"pause({node})")
            orders.pause(node)

    def resume(self, *nodes: int) -> None:
        """Let paused nodes go on, all of them by default."""
        orders = self._orders("resume", "resume a node")
        for node in nodes or orders.paused():
            self._note(f"resume({node})")
            orders.resume(node)

    # -- links and disks

    def partition(
        self, a: Iterable[Member], b: Iterable[Member] | None = None, *, one_way: bool = False, clients: bool = False
    ) -> None:
        """Cut the links between two groups of nodes. Without `b`, between `a` and all other nodes.

        `"clients"` in a group means everything that is not a node; `clients=True` puts it on the side of `a`, or on the
        other side if only `a` is named. `one_way`: only what `a` sends is lost.
        """
        orders = self._orders("partition", "cut a link")
        self._set(orders, Partition(*self._sides(orders, "partition", a, b, clients), one_way))

    def slow(
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
        orders = self._orders("slow", "slow a link down")
        if not (latency_s or jitter_s or rate_bytes):
            raise ValueError("slow: say how slow, with latency_s, jitter_s or rate_bytes")
        ends = self._sides(orders, "slow", a, b, clients)
        self._set(orders, Slow(*ends, one_way, round(latency_s * 1000), round(jitter_s * 1000), rate_bytes))

    def disk(
        self,
        node: int,
        state: DiskState,
        *,
        log_dir: str | None = None,
        latency_s: float = 0.1,
        writes: bool = False,
    ) -> None:
        """Make a node's disk, or one of its log directories, full, failed, slow or read-only.

        full: Fail what needs space on a disk (ENOSPC). failed: Fail every access to the disk (EIO).
        read-only: Fail every change to the disk (EROFS). slow: Let each sync take longer. By `latency_s`; with
        `writes` each write, too.
        """
        orders = self._orders("disk", "break a disk")
        if state not in get_args(DiskState):
            raise ValueError(f"disk: a disk can be {', '.join(map(repr, get_args(DiskState)))}, not {state!r}")
        path = None if log_dir is None else orders.log_dir(node, log_dir)
        slow = state == "slow"
        self._set(orders, BadDisk(node, state, path, round(latency_s * 1000) if slow else 0, slow and writes))

    # -- requests

    def inject_error(self, api: str, error: str, *, after: bool | None = None) -> RequestFaultBuilder:
        """Answer requests of an API with an error: `inject_error("PRODUCE", "NOT_ENOUGH_REPLICAS")`.

        By default as Kafka does it: nearly all errors refuse the request, which then has no effect, and those that
        Kafka gives afterwards (REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND) are given when it is carried out.
        `after` says otherwise: True carries it out, False does not.
        `.once()`, `.on_call(n)`, `.times(n)`, `.every_time()` or `.with_probability(p)` sets it.
        """
        return self._by_request("inject_error", error_fault(api_key_of(api), error_code_of(error), after))

    def delay_on(self, api: str, seconds: float) -> RequestFaultBuilder:
        """Hold answers back. The requests are carried out; all that follows on the connection waits, too."""
        if seconds <= 0:
            raise ValueError(f"delay_on: a delay is longer than {seconds:g} s")
        return self._by_request("delay_on", RequestFault("delay", api_key_of(api), delay_ms=round(seconds * 1000)))

    def disconnect_on(self, api: str) -> RequestFaultBuilder:
        """End the connection in place of the answer. The request is carried out."""
        return self._by_request("disconnect_on", RequestFault("disconnect", api_key_of(api)))

    def blackhole_client(self, client_id: str) -> RequestFaultBuilder:
        """Drop the requests of some clients: those whose id has this in it."""
        if not client_id:
            raise ValueError("blackhole_client: name a part of the client's id")
        return self._by_request("blackhole_client", RequestFault("blackhole", client_id=client_id))

    def heal(self, *members: Member) -> None:
        """End all faults of links, disks and requests, and resume what is paused; or only those of some nodes."""
        orders = self._orders("heal", "heal a fault")
        before = orders.present().requests
        left, _ = orders.heal({_member("heal", member) for member in members} or None)
        self._note(f"heal({', '.join(map(repr, members))})")
        for rule in before:
            if rule not in left.requests:
                self._note(f"fault ended: {rule} ({orders.hits_of(rule)})")

    def faults(self) -> list[str]:
        """The faults that are in force, a sentence each."""
        if self._backend.local is None:
            return []
        orders = FaultRequests(self._backend.local.folder)
        paused = [f"node {node} is paused" for node in orders.paused()]
        down = [f"node {node} is down" for node in self.down]
        present = orders.present()
        requests = [f"{rule} ({orders.hits_of(rule)})" for rule in present.requests]
        return [str(fault) for fault in present.faults] + requests + paused + down

    # -- topics

    def create_topic(
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
        placed = [tuple(each) for each in assignment]
        with as_cluster_errors(f"create_topic({name!r})"), self._client() as client:
            admin.create_topic(
                client, name, partitions=partitions, replication_factor=replicas, assignment=placed, config=config
            )
        self.wait_until(Condition(name), timeout=_PATIENCE_S)
        return name

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        with as_cluster_errors(f"delete_topic({name!r})"), self._client() as client:
            admin.delete_topic(client, name)

    def topics(self) -> list[str]:
        """The names of all topics but Kafka's internal ones."""
        with as_cluster_errors("topics"), self._client() as client:
            return [name for name, _, internal in admin.list_topics(client) if not internal]

    # -- looking

    def partition_state(self, topic: str, partition: int = 0) -> PartitionState:
        """Leader, epoch, replicas, ISR, ELR, LastKnownElr and offsets of a partition now; each replica's log end."""
        recovering = None
        ends: dict[int, int] = {}
        if self._backend.local is not None:
            recovering = history.recovering(self._backend.local.folder, topic, partition)
            ends = observations.log_ends(self._file(), topic, partition)
        with as_cluster_errors(f"partition_state({topic!r}, {partition})"), self._client() as client:
            return observations.partition_state(client, topic, partition, recovering, ends)

    def partition_states(self, topic: str) -> list[PartitionState]:
        """The state of every partition of a topic."""
        with as_cluster_errors(f"partition_states({topic!r})"), self._client() as client:
            (described,) = admin.describe_topics(client, [topic])
        return [self.partition_state(topic, each.partition) for each in described.partitions]

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """What consumers can read: all records of a topic, or of one partition, in the order of their offsets."""
        with as_cluster_errors(f"records({topic!r})"), self._client() as client:
            chosen = [partition]
            if partition is None:
                (described,) = admin.describe_topics(client, [topic])
                chosen = [each.partition for each in described.partitions]
            return [record for index in chosen for record in observations.records(client, topic, index or 0)]

    def salvage(self, topic: str | None = None) -> list[SalvageEntry]:
        """What replicas have dropped and saved before, with the records; of one topic or of all, the oldest first."""
        return observations.salvage(self._need("salvage", "show what replicas dropped").folder, topic)

    def events(
        self, kind: type[KindOfEvent] | None = None, *, topic: str | None = None, **fields: object
    ) -> list[NodeEvent]:
        """What the nodes have decided and seen so far, by time: of one kind, of one topic, with these fields.

        kafka.events(LeaderElected, topic="orders", leader=2)

        The kinds are in `tanist.events`. Those of records and fetches come only where `tanist.events.fine` is true.
        """
        return node_events.find(self._need("events", "read its nodes' events").folder, kind, topic, fields)

    def wait_for(
        self,
        kind: type[KindOfEvent],
        *,
        topic: str | None = None,
        after: NodeEvent | None = None,
        timeout: float = _PATIENCE_S,
        **fields: object,
    ) -> NodeEvent:
        """Wait for an event, and give it: the first such one, or the first after another one. `NotInTime`.

        kafka.wait_for(LeaderElected, partition="orders-0", leader=2)
        """
        folder = self._need("wait_for", "read its nodes' events").folder
        return node_events.wait_for_event(folder, kind, topic, fields, after, timeout)

    def happened(self, *topics: str) -> list[Event]:
        """What happened to the partitions of these topics and what was done to the cluster, as one sequence."""
        local = self._need("happened", "show its metadata log")
        found = [*history.partition_events(local.folder, topics), *self._backend.did]
        return sorted(found, key=lambda event: event.wall_ms)

    def wait_until(
        self,
        condition: Condition | Callable[[], object] | None = None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        isr: int | None = None,
        leader: int | None = None,
        timeout: float = _PATIENCE_S,
    ) -> None:
        """Wait until a condition holds: `led(topic)`, `in_sync(topic)`, any function, or `topic=..., isr=2, leader=1`.

        `NotInTime` after `timeout` seconds; its text says what was missing last.
        """
        if condition is None:
            if topic is None:
                raise ValueError("wait_until: say what to wait for: a condition, or topic=...")
            condition = Condition(topic, partition, leader, isr=isr)
        elif topic is not None or isr is not None or leader is not None or partition is not None:
            raise ValueError("wait_until: give a condition, or topic=, partition=, isr= and leader=, not both")
        if isinstance(condition, Condition):
            with as_cluster_errors("wait_until"):
                wait_for(condition, self._client, timeout)
        else:
            wait_for_true(condition, timeout)

    # -- who gets in

    def security(self) -> Security:
        """Client settings, users, permissions and certificates of a cluster that was made with `secure=True`."""
        local = self._need("security", "change certificates and users")
        if not self._file().secure:
            raise ClusterError("security: the cluster has none: make it by Cluster(secure=True)")
        return Security(local)

    # -- inner

    def _client(self) -> Client:
        local = self._backend.local
        if local is None:
            return Client(self._backend.bootstrap, client_id=CLIENT_ID, timeout_s=_PATIENCE_S)
        return client_of(self._file(), local.folder, client_id=CLIENT_ID, timeout_s=_PATIENCE_S)

    def _addresses(self) -> list[Address]:
        if self._backend.local is None:
            return list(self._backend.bootstrap)
        file = self._file()
        return [(file.host, node.broker_port) for node in file.brokers]

    def _file(self) -> ClusterFile:
        return load_existing(self._need("cluster", "show its nodes").folder)

    def _need(self, operation: str, verb: str) -> runtime.LocalCluster:
        """The cluster that was started here. `NotAvailable` if there is none."""
        local = self._backend.local
        if local is None and not self._backend.bootstrap:
            raise ClusterError(f"{operation}: this cluster is not open: use `with Cluster() as cluster`, or open()")
        if local is None:
            self._backend.refused.add(operation)
            raise NotAvailable(
                f"{operation}: only clusters that tanist.testing has started can {verb}, and {self.bootstrap} is not "
                "one: use tanist.testing.Cluster(), or run without --tanist-bootstrap"
            )
        return local

    def _orders(self, operation: str, verb: str) -> FaultRequests:
        return FaultRequests(self._need(operation, verb).folder)

    def _set(self, orders: FaultRequests, fault: Fault) -> None:
        self._note(f"fault: {fault}")
        orders.set(fault)

    def _by_request(self, operation: str, rule: RequestFault) -> RequestFaultBuilder:
        orders = self._orders(operation, "fault a request")

        def inject(complete: RequestFault) -> InjectedFault:
            found = orders.inject(complete)
            self._note(f"fault: {found}")
            return InjectedFault(orders, found, lambda what: self._note(f"fault ended: {what}"))

        return RequestFaultBuilder(rule, inject)

    def _sides(
        self, orders: FaultRequests, operation: str, a: Iterable[Member], b: Iterable[Member] | None, clients: bool
    ) -> tuple[Side, Side]:
        source = [_member(operation, member) for member in a]
        target = None if b is None else [_member(operation, member) for member in b]
        return orders.sides(source, target, clients=clients)

    def _note(self, text: str) -> None:
        self._backend.did.append(Event(time.time_ns() // 1_000_000, "test", text))


def _member(operation: str, member: Member) -> int:
    if member == "clients":
        return CLIENTS
    if isinstance(member, int):
        return member
    raise ValueError(f'{operation}: {member!r} is neither a node id nor "clients"')


def _named(operation: str, nodes: tuple[int, ...]) -> tuple[int, ...]:
    if not nodes:
        raise ValueError(f"{operation}: say which node, for instance {operation}(1)")
    return nodes
