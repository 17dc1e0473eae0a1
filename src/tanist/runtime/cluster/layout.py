"""How a cluster that `tanist up` makes is laid out: roles, node ids, ports, and the `server.properties` of each
node.

Decides only; starts and stops nothing. Every value that a user may want to change is a plain Kafka setting in the
written file, or comes from `--config`.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tanist.broker.config import METRICS_LISTENER, NodeConfig
from tanist.log.properties import encode_properties, join_paths
from tanist.runtime.cluster.cluster_file import ClusterError, ClusterFile, NodeEntry
from tanist.runtime.cluster.port_holders import holder_of
from tanist.runtime.cluster.secure_files import CLIENT_LISTENER, CONTROLLER_LISTENER, SecureFiles
from tanist.text import host_port

DEFAULT_DATA = "./tanist-data"
"""The folder of a cluster, where no other is given."""

FIRST_CONTROLLER_ID = 1001

_PORT_MAX = 65_535
_LOWEST = 10_000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_EPHEMERAL_FIRST = 49_152
"""The first port that outgoing connections get, where the system does not say it (IANA's, and macOS's)."""
_TRIES = 100

_CLUSTER_SETTINGS = {
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "min.insync.replicas": 2,
    "transaction.state.log.min.isr": 2,
}
"""The settings of a production cluster of three. Smaller clusters get as much of it as they can hold."""


_ONE_MACHINE_SETTINGS = {"controller.quorum.election.timeout.ms": "200", "group.initial.rebalance.delay.ms": "0"}
"""Nodes of one machine answer each other within a millisecond: an election need not wait a second for votes, nor a new
group three for more members (Kafka's quickstart has 0 as well)."""


@dataclass(frozen=True, slots=True)
class PickedPort:
    """A port that a node was given, and the one that was meant for it."""

    wanted: int
    given: int
    returned: bool = False
    """The port that was wanted from the beginning, after another one for a while."""

    def __str__(self) -> str:
        if self.returned:
            return f"port {self.given} is free again: using it instead of {self.wanted}"
        return f"port {self.wanted} is taken: using {self.given}"


def lay_out(
    *,
    cluster_id: str,
    brokers: int,
    controllers: int,
    host: str,
    port: int,
    config: Mapping[str, str],
    log_dirs: int = 1,
    secure: bool = False,
) -> tuple[ClusterFile, list[PickedPort]]:
    """A new cluster, and the ports that were not to be had. `controllers` 0: the first brokers are controllers too.

    Nodes have consecutive ports from `port` on: the brokers' listeners, then the controllers, then the metrics. With
    port 0 they begin where nobody listens, out of the range of outgoing connections, so that they are free at the next
    start as well: the cluster can stand beside any other.

    A combined cluster has one controller, or three, or five: an even number of them survives no more losses than the
    odd number below it.
    """
    combined = 0 if controllers else 1 if brokers < 3 else 3 if brokers < 5 else 5
    nodes = [
        NodeEntry(index + 1, ("broker", "controller") if index < combined else ("broker",), 0, 0)
        for index in range(brokers)
    ]
    nodes += [NodeEntry(FIRST_CONTROLLER_ID + index, ("controller",), 0, 0) for index in range(controllers)]
    count = brokers + (combined or controllers) + len(nodes)
    meant = list(range(port, port + count)) if port else _free_ports(host, count)
    wanted = iter(meant)
    taken: set[int] = set()
    moved: list[PickedPort] = []

    def pick() -> int:
        first = next(wanted)
        given = first if _is_free(host, first) else next_free_port(host, first, {*meant, *taken})
        taken.add(given)
        if given != first:
            moved.append(PickedPort(first, given))
        return given

    for node in nodes:
        if node.is_broker:
            node.broker_port = pick()
    for node in nodes:
        if node.is_controller:
            node.controller_port = pick()
    for node in nodes:
        node.metrics_port = pick() if meant[-1] <= _PORT_MAX else 0
    file = ClusterFile(cluster_id, host, nodes, dict(config), log_dirs)
    file.secure = secure
    file.moved = {picked.given: picked.wanted for picked in moved}
    return file, moved


def move_ports(cluster: ClusterFile, nodes: Sequence[NodeEntry] = ()) -> list[PickedPort]:
    """Give stopped nodes other ports where theirs are taken by now, and those that were meant for them where these are
    free again. Gives what has changed.

    Without `nodes` it is about all of a cluster that is down. Else the others run, and have the ports of the
    controllers in their configuration (controller.quorum.voters): `ClusterError` where one of those is taken.
    """
    changed: list[PickedPort] = []
    moving = list(nodes) or cluster.nodes
    taken = {port for node in cluster.nodes if node not in moving for port in node.ports}
    moved = {given: wanted for given, wanted in cluster.moved.items() if given in taken}

    def pick(port: int) -> int:
        if not port:
            return 0
        wanted = cluster.moved.get(port, port)
        free = (each for each in (wanted, port) if each not in taken and _is_free(cluster.host, each))
        given = next(free, 0) or next_free_port(cluster.host, port, {*taken, *own})
        if given != wanted:
            moved[given] = wanted
        if given != port:
            changed.append(PickedPort(port, given, returned=given == wanted))
        taken.add(given)
        return given

    own = {port for node in moving for port in node.ports}
    if nodes:
        for node in moving:
            if node.controller_port:
                _require_free(cluster, node)
                taken.add(node.controller_port)
                if node.controller_port in cluster.moved:
                    moved[node.controller_port] = cluster.moved[node.controller_port]
    for node in moving:
        node.broker_port = pick(node.broker_port)
        node.controller_port = node.controller_port if nodes else pick(node.controller_port)
        node.metrics_port = pick(node.metrics_port)
    cluster.moved = moved
    return changed


def _require_free(cluster: ClusterFile, node: NodeEntry) -> None:
    port = node.controller_port
    if not _is_free(cluster.host, port):
        holder = holder_of(port)
        raise ClusterError(
            f"node {node.node_id} cannot start: {holder or 'another process'} has its controller's port {port}, which "
            "the running nodes have in their configuration. End that process; or `tanist down` and `tanist up`, which "
            "gives the node another port"
        )


def _free_ports(host: str, count: int) -> list[int]:
    """So many that are free now and next to each other, out of the range of outgoing connections if possible.

    A connection could have one of those when its node starts again.
    """
    last = _ephemeral_first() - count
    for _ in range(_TRIES if last > _LOWEST else 0):
        first = random.randrange(_LOWEST, last)
        if all(_is_free(host, first + number) for number in range(count)):
            return list(range(first, first + count))
    return _ports_by_the_system(host, count)


def _ephemeral_first() -> int:
    try:
        return int(_EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _EPHEMERAL_FIRST


def _ports_by_the_system(host: str, count: int) -> list[int]:
    """So many different ports that are free now, wherever the system finds them."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket(family, socket.SOCK_STREAM)) for _ in range(count)]
        try:
            for probe in probes:
                probe.bind((host, 0))
        except OSError as error:
            raise ClusterError(f"there is no free port on {host}: {error.strerror}") from None
        return [int(probe.getsockname()[1]) for probe in probes]


def next_free_port(host: str, wanted: int, taken: Iterable[int] = ()) -> int:
    """`wanted`, or the next port above it that nobody listens on and that is not in `taken`."""
    for port in range(wanted, _PORT_MAX + 1):
        if port not in taken and _is_free(host, port):
            return port
    raise ClusterError(f"no free port from {wanted} up on {host}: name a lower one with --port")


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def node_folder(folder: Path, node_id: int) -> Path:
    return folder / f"node-{node_id}"


def properties_path(folder: Path, node_id: int) -> Path:
    return node_folder(folder, node_id) / "server.properties"


def log_path(folder: Path, node_id: int) -> Path:
    """The properties of the node's process."""
    return node_folder(folder, node_id) / "node.log"


def log_directories(folder: Path, node_id: int) -> list[str]:
    """The node's log.dirs, as its `server.properties` has them by now. `ClusterError` if there is no such file."""
    path = properties_path(folder, node_id)
    try:
        return list(NodeConfig.from_text(path.read_text()).log_dirs)
    except (OSError, ValueError) as error:
        raise ClusterError(f"{path} cannot be read: {error}") from None


def properties_of(cluster: ClusterFile, node: NodeEntry, folder: Path) -> dict[str, str]:
    """The node's `server.properties`."""
    listeners = []
    to_clients = CLIENT_LISTENER if cluster.secure else "PLAINTEXT"
    if node.is_broker:
        listeners.append(f"{to_clients}://{host_port(cluster.host, node.broker_port)}")
    if node.is_controller:
        listeners.append(f"{CONTROLLER_LISTENER}://{host_port(cluster.host, node.controller_port)}")
    properties = {
        "process.roles": ",".join(node.roles),
        "node.id": str(node.node_id),
        "listeners": ",".join(listeners),
        "controller.listener.names": CONTROLLER_LISTENER,
        "listener.security.protocol.map": (
            f"{to_clients}:{to_clients},{CONTROLLER_LISTENER}:{'SSL' if cluster.secure else 'PLAINTEXT'}"
        ),
        "controller.quorum.voters": ",".join(
            f"{voter.node_id}@{host_port(cluster.host, voter.controller_port)}" for voter in cluster.controllers
        ),
        "log.dirs": join_paths(
            str(node_folder(folder, node.node_id) / ("data" if number == 1 else f"data-{number}"))
            for number in range(1, cluster.log_dirs + 1)
        ),
    }
    if node.is_broker:
        properties["advertised.listeners"] = f"{to_clients}://{host_port(cluster.host, node.broker_port)}"
        properties["inter.broker.listener.name"] = to_clients
    if node.rack is not None:
        properties["broker.rack"] = node.rack
    if node.metrics_port:
        properties[METRICS_LISTENER] = host_port(cluster.host, node.metrics_port)
    brokers = len(cluster.brokers)
    for name, value in _CLUSTER_SETTINGS.items():
        properties[name] = str(min(value, brokers if "factor" in name else max(1, brokers - 1)))
    if cluster.secure:
        properties |= SecureFiles(folder).node_properties(node.node_id, [each.node_id for each in cluster.nodes])
    return properties | _ONE_MACHINE_SETTINGS | cluster.config


def metrics_address(cluster: ClusterFile, node: NodeEntry) -> str | None:
    """host:port at which the node tells its metrics, unless `--config` has said something else."""
    if not node.metrics_port:
        return None
    return cluster.config.get(METRICS_LISTENER, host_port(cluster.host, node.metrics_port)) or None


def properties_text(properties: Mapping[str, str]) -> str:
    header = "# Written by `tanist up`. It writes this file again when ports have to move or --config is given.\n"
    return header + encode_properties(properties)
