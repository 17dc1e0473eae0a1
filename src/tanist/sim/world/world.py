"""A cluster in the virtual world: its hosts, its time and its trace.

The world owns the scheduler, the network and the hosts. It checks nothing: a `Watcher` does.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from tanist.broker.logins import ChannelLogin
from tanist.broker.node import Node
from tanist.events.event import Event as NodeEvent
from tanist.events.text import describe
from tanist.quorum.voters import VoterSet
from tanist.sim.event_text import line
from tanist.sim.events import Event
from tanist.sim.world.clock import stream
from tanist.sim.world.host import CLUSTER_ID, CONTROLLER_PORT, PRIVATE_REQUESTS, Host, Watcher
from tanist.sim.world.link_conditions import NetworkConditions
from tanist.sim.world.network import SimNetwork
from tanist.sim.world.scheduler import MICROSECONDS, Process, Scheduler

__all__ = [
    "BROKER_PORT",
    "CLUSTER_ID",
    "COMBINED",
    "CONTROLLER_PORT",
    "DATA",
    "PRIVATE_REQUESTS",
    "Host",
    "Trace",
    "Watcher",
    "World",
]

BROKER_PORT = 9092
DATA = "/data"
METADATA = "/metadata"
"""The folder of the metadata log, where it has a disk of its own: in clusters with dynamic voters."""
COMBINED = "broker,controller"
_POLL_US = 10_000
"""Pause between two looks at a condition that time passes for."""

Trace = Callable[[int, str, str, str], None]
"""(virtual microseconds, who, level, message)"""


def _quorum_properties(controllers: Iterable[int], *, dynamic: bool) -> dict[str, str]:
    if dynamic:
        servers = ",".join(f"node{node_id}:{CONTROLLER_PORT}" for node_id in controllers)
        return {"controller.quorum.bootstrap.servers": servers, "metadata.log.dir": METADATA}
    return {"controller.quorum.voters": ",".join(f"{n}@node{n}:{CONTROLLER_PORT}" for n in controllers)}


class World:
    """A whole cluster in one thread."""

    def __init__(
        self,
        seed: int,
        *,
        nodes: int = 3,
        roles: Mapping[int, str] | None = None,
        directories: int = 1,
        config: Mapping[str, str] | None = None,
        own_config: Mapping[int, Mapping[str, str]] | None = None,
        conditions: NetworkConditions | None = None,
        trace: Trace | None = None,
        voters: Collection[int] = (),
        groups: Mapping[str, int] | None = None,
    ) -> None:
        """Nodes 1 to `nodes` are broker and controller, or `roles` says what each node is.

        `config`: properties of all nodes; `own_config`: those of one node.
        `voters`: the first ones of a dynamic quorum. Without any all controllers vote, for good.
        `groups`: the levels that the cluster begins with of `share.version` and `streams.version`, if not 0.
        """
        self.seed = seed
        self.group_features: Mapping[str, int] = groups or {}
        self.counts: Counter[str] = Counter()
        """Counters of exercised situations (`coverage.py`)."""
        self.scheduler = Scheduler()
        self.scheduler.after_turn = self._turn_ended
        self.network = SimNetwork(self.scheduler, stream(seed, "network"), conditions)
        self.watchers: list[Watcher] = []
        self.fine = False
        """Whether the nodes that start from now on give watchers their fine events too (`tanist.events.stream`)."""
        self.clients: list[str] = []
        """Names of the clients: hosts of their own to the network."""
        self.login_of: Callable[[str], ChannelLogin | None] = lambda name: None
        """By what a client of this name authenticates; None: it does not."""
        self.owners: dict[Process, Host] = {}
        self._digest = hashlib.sha256()
        self.trace = trace
        """Gets each note, for people. It changes nothing."""
        roles = roles or dict.fromkeys(range(1, nodes + 1), COMBINED)
        controllers = [node_id for node_id, role in roles.items() if "controller" in role]
        self.is_dynamic = bool(voters)
        self.hosts: dict[int, Host] = {}
        for node_id, role in roles.items():
            name = f"node{node_id}"
            listeners = {
                "broker": f"PLAINTEXT://{name}:{BROKER_PORT}",
                "controller": f"CONTROLLER://{name}:{CONTROLLER_PORT}",
            }
            properties = {
                "process.roles": role,
                "node.id": str(node_id),
                "listeners": ",".join(listeners[each] for each in role.split(",")),
                "controller.listener.names": "CONTROLLER",
                **_quorum_properties(controllers, dynamic=self.is_dynamic),
                "log.dirs": DATA if directories == 1 else ",".join(f"{DATA}/{n}" for n in range(1, directories + 1)),
                **(config or {}),
                **(own_config or {}).get(node_id, {}),
            }
            if "broker" in role:
                properties["advertised.listeners"] = listeners["broker"]
            host = self.hosts[node_id] = Host(self, node_id, name, properties)
            host.format()
        first = VoterSet(self.hosts[node_id].as_voter() for node_id in voters)
        for node_id in voters:
            self.hosts[node_id].write_first_voters(first)

    def _turn_ended(self, process: Process) -> None:
        host = self.owners.get(process)
        if host is not None:
            for watcher in self.watchers:
                watcher.turn_ended(host)

    def observed(self, host: Host, event: NodeEvent) -> None:
        """A node has emitted an event."""
        for watcher in self.watchers:
            watcher.observed(host, event)
        rendered = describe(event)
        if rendered is not None:
            level, text = rendered
            self._note(host.name, level, text.partition("\n")[0])  # a traceback's files depend on the installation

    def emit(self, event: Event) -> None:
        """Write the line of an event of the world into the trace, and pass the event to all watchers."""
        rendered = line(event)
        if rendered is not None:
            self._note(*rendered)
        for watcher in self.watchers:
            watcher.happened(event)

    # -- time

    @property
    def now_us(self) -> int:
        return self.scheduler.now_us

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_us // MICROSECONDS

    def run_for(self, duration_ms: int) -> None:
        self.scheduler.run_until(self.scheduler.now_us + duration_ms * MICROSECONDS)

    def run_until(self, condition: Callable[[], bool], *, within_ms: int) -> bool:
        """Let time pass until the condition holds. Returns whether it held within the time."""
        deadline_us = self.scheduler.now_us + within_ms * MICROSECONDS
        while not condition():
            if self.scheduler.now_us >= deadline_us:
                return False
            self.scheduler.run_until(min(self.scheduler.now_us + _POLL_US, deadline_us))
        return True

    # -- the trace

    def _note(self, who: str, level: str, message: str) -> None:
        """Add a line to the run's trace. The same seed gives the same lines, which `digest` covers."""
        self._digest.update(f"{self.scheduler.now_us} {who} {level} {message}\n".encode())
        if self.trace is not None:
            self.trace(self.scheduler.now_us, who, level, message)

    @property
    def digest(self) -> str:
        """A hash over all notes, all sent bytes, and the contents of all disks."""
        digest = self._digest.copy()
        digest.update(f"{self.scheduler.events} {self.network.fingerprint}".encode())
        for host in self.hosts.values():
            for path in host.disk.paths():
                digest.update(path.encode())
                digest.update(host.disk.content(path))
        return digest.hexdigest()

    # -- the cluster

    def start(self, only: Iterable[int] | None = None) -> None:
        for node_id in only if only is not None else self.hosts:
            self.hosts[node_id].start()

    def nodes(self) -> list[Node]:
        """The nodes that run."""
        return [host.node for host in self.hosts.values() if host.up and host.node is not None]

    @property
    def brokers(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.is_broker]

    def ready(self) -> bool:
        """Every broker that runs is unfenced, and there is a controller."""
        nodes = self.nodes()
        return bool(nodes) and all(
            node.quorum.leader_id is not None and (not node.is_broker or node.lifecycle.state.value == "RUNNING")
            for node in nodes
        )
