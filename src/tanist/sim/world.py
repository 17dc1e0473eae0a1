"""A cluster in the virtual world: hosts with disks, nodes on them, and what can be done to both.

The world owns the scheduler, the network and the disks; a `Host` owns one node after another (each start is a new life
with new ports over the same disk). Nothing here checks anything: `checkers` looks on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping

from tanist.broker.config import NodeConfig
from tanist.broker.node import Node
from tanist.sim.clock import SimClock, SimRandom
from tanist.sim.disk import SimDisk
from tanist.sim.network import NetworkConditions, SimNetwork
from tanist.sim.scheduler import MICROSECONDS, Process, Scheduler

BROKER_PORT = 9092
CONTROLLER_PORT = 9093
DATA = "/data"


class Host:
    """One machine: a disk that stays, a node that comes and goes."""

    def __init__(self, world: World, node_id: int, name: str, properties: Mapping[str, str]) -> None:
        self.world = world
        self.node_id = node_id
        self.name = name
        self.properties = dict(properties)
        self.disk = SimDisk(world.scheduler, world.scheduler.chance.getrandbits(64))
        self.node: Node | None = None
        self.process: Process | None = None
        self.lives = 0
        self.wall_skew_ms = 0
        self.fatal: str | None = None
        self.powered = True

    @property
    def up(self) -> bool:
        return self.process is not None and self.process.alive

    def start(self) -> Node:
        """Begin a new life of the node."""
        if self.up:
            raise RuntimeError(f"{self.name} runs already")
        world = self.world
        if not self.powered:
            self.powered = True
            world.network.got_power(self.name)
        self.lives += 1
        self.fatal = None
        process = Process(f"{self.name}#{self.lives}")
        self.process = process
        node = Node(
            NodeConfig.from_properties(self.properties, hostname=self.name),
            SimClock(world.scheduler, process, self.wall_skew_ms),
            self.disk.view(process),
            world.network.view(self.name, process),
            SimRandom(world.scheduler.chance.getrandbits(64)),
            lambda level, message: world.note(self.name, level, message),
            self._died,
        )
        self.node = node
        world.scheduler.dispatch(process, node.start)
        return node

    def _died(self, reason: str) -> None:
        """The node gave up by itself: its process ends."""
        self.fatal = reason
        self.world.note(self.name, "FATAL", reason)
        self.kill()

    def kill(self) -> None:
        """SIGKILL: the process is gone, the page cache is not."""
        if self.process is None or not self.process.alive:
            return
        self.process.alive = False
        self.world.network.killed(self.process)
        self.world.note(self.name, "FAULT", "killed")

    def lose_power(self) -> None:
        """The machine is gone, and what was not synced with it; its peers hear nothing."""
        if self.process is not None and self.process.alive:
            self.process.alive = False
            self.world.network.lost_power(self.name, self.process)
        self.powered = False
        self.disk.lose_power()
        self.world.note(self.name, "FAULT", "lost power")

    def stop(self) -> None:
        """SIGTERM: controlled shutdown; the process ends when it is done."""
        process, node = self.process, self.node
        if process is None or node is None or not process.alive:
            return

        def done() -> None:
            process.alive = False
            self.world.network.killed(process)
            self.world.note(self.name, "INFO", "has stopped")

        self.world.scheduler.dispatch(process, lambda: node.stop(done))

    def freeze(self) -> None:
        """A long pause: nothing runs, the clock goes on, connections stay."""
        if self.process is not None and self.process.alive:
            self.process.frozen = True
            self.world.note(self.name, "FAULT", "frozen")

    def thaw(self) -> None:
        if self.process is not None and self.process.frozen:
            self.world.note(self.name, "FAULT", "goes on")
            self.world.scheduler.thaw(self.process)


class World:
    """A whole cluster in one thread."""

    def __init__(
        self,
        seed: int,
        *,
        nodes: int = 3,
        config: Mapping[str, str] | None = None,
        conditions: NetworkConditions | None = None,
        trace: Callable[[int, str, str, str], None] | None = None,
    ) -> None:
        self.seed = seed
        self.scheduler = Scheduler(seed)
        self.network = SimNetwork(self.scheduler, conditions)
        self._digest = hashlib.sha256()
        self._trace = trace
        voters = ",".join(f"{n}@node{n}:{CONTROLLER_PORT}" for n in range(1, nodes + 1))
        cluster_id = "c2ltdWxhdGVkLWNsdXN0ZX"
        self.hosts: dict[int, Host] = {}
        for node_id in range(1, nodes + 1):
            name = f"node{node_id}"
            properties = {
                "process.roles": "broker,controller",
                "node.id": str(node_id),
                "listeners": f"PLAINTEXT://{name}:{BROKER_PORT},CONTROLLER://{name}:{CONTROLLER_PORT}",
                "advertised.listeners": f"PLAINTEXT://{name}:{BROKER_PORT}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voters,
                "log.dirs": DATA,
                **(config or {}),
            }
            host = Host(self, node_id, name, properties)
            self.hosts[node_id] = host
            _format(host, cluster_id)

    # -- time

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_us // MICROSECONDS

    def run_for(self, duration_ms: int) -> None:
        self.scheduler.run_until(self.scheduler.now_us + duration_ms * MICROSECONDS)

    def run_until(self, condition: Callable[[], bool], *, within_ms: int) -> bool:
        """Let time pass until the condition holds; says whether it did within the time."""
        if condition():
            return True
        return self.scheduler.run_until(self.scheduler.now_us + within_ms * MICROSECONDS, condition)

    # -- the record of what happened

    def note(self, who: str, level: str, message: str) -> None:
        """A line of the run's history. The same seed gives the same lines; `digest` is what shows it."""
        self._digest.update(f"{self.scheduler.now_us} {who} {level} {message}\n".encode())
        if self._trace is not None:
            self._trace(self.scheduler.now_us, who, level, message)

    @property
    def digest(self) -> str:
        """Over all notes and the contents of all disks."""
        digest = self._digest.copy()
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

    def ready(self) -> bool:
        """Every node that runs is unfenced, and there is a controller."""
        nodes = self.nodes()
        return bool(nodes) and all(
            node.lifecycle.state.value == "RUNNING" and node.quorum.leader_id is not None for node in nodes
        )


def _format(host: Host, cluster_id: str) -> None:
    """What `tanist format` leaves: the folder with its meta.properties."""
    from tanist.broker.assembly import format_directory

    format_directory(
        host.disk.view(Process("format")),
        DATA,
        cluster_id,
        host.node_id,
        SimRandom(host.world.seed * 31 + host.node_id),
    )
