"""What the process tests and the benchmark need of a cluster, whichever broker it is made of.

`ApacheCluster` (`apache.py`) and `TanistCluster` (`tanist_cluster.py`) both satisfy `Cluster`, so that a test, a round
of faults or a workload is written once and run against either. Everything is on 127.0.0.1, and ends with `stop()`.
"""

from __future__ import annotations

import os
import random
import signal
import socket
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, runtime_checkable

from tests.interop.raw import ClusterState, ProtocolError, RawClient
from tests.interop.waiting import POLL_S, wait_for

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
HOST = "127.0.0.1"
CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# Below the range from which the kernel picks the ports of outgoing connections: a node that is killed must find its
# port free again when it restarts.
PORT_RANGE = range(12000, 31000)


class Cluster(Protocol):
    """A running cluster of combined nodes (broker and controller each)."""

    name: str

    @property
    def node_ids(self) -> Sequence[int]: ...

    @property
    def bootstrap(self) -> str:
        """What clients call bootstrap.servers."""

    def address(self, node_id: int) -> tuple[str, int]: ...

    def pid(self, node_id: int) -> int | None:
        """The process of a node, None when it does not run."""

    def log_directory(self, node_id: int) -> Path:
        """The folder that holds the node's `TOPIC-N` folders."""

    def start(self) -> None:
        """Start all nodes and wait until every one of them serves."""

    def stop(self) -> None:
        """End all processes, politely if they let us. Safe to call twice, and half-way through `start`."""

    def start_node(self, node_id: int) -> None: ...

    def stop_node(self, node_id: int) -> None:
        """SIGTERM (a controlled shutdown), and wait for the end."""

    def kill_node(self, node_id: int) -> None:
        """SIGKILL."""


@runtime_checkable
class Secured(Protocol):
    """A cluster that lets nobody in who does not say who he is."""

    def client_settings(self, *, as_admin: bool = False) -> dict[str, Any]:
        """What librdkafka's clients are configured by: as a user who may read and write, or one who may do all."""

    def log_in(self, client: RawClient) -> None:
        """As somebody who sees everything."""


def client_settings(cluster: Cluster, *, as_admin: bool = False) -> dict[str, Any]:
    """What librdkafka's clients of the cluster are configured by."""
    if isinstance(cluster, Secured):
        return cluster.client_settings(as_admin=as_admin)
    return {"bootstrap.servers": cluster.bootstrap}


def raw_client(cluster: Cluster, node_id: int) -> RawClient:
    """A connection to one node."""
    client = RawClient(*cluster.address(node_id), timeout_s=60)
    if isinstance(cluster, Secured):
        try:
            cluster.log_in(client)
        except BaseException:
            client.close()
            raise
    return client


def interrupt_on_sigterm() -> None:
    """Let a SIGTERM (of a timeout, of CI) end the run as Ctrl-C does: through the `finally`s that stop processes."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def free_ports(count: int) -> int:
    """The first of `count` consecutive ports nobody listens on."""
    rng = random.Random()
    for _ in range(1000):
        first = rng.randrange(PORT_RANGE.start, PORT_RANGE.stop - count)
        taken = []
        try:
            for port in range(first, first + count):
                listener = socket.socket()
                taken.append(listener)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((HOST, port))
        except OSError:
            continue
        finally:
            for listener in taken:
                listener.close()
        return first
    raise OSError(f"no {count} consecutive free ports")


def metadata(cluster: Cluster, node_id: int, topics: Sequence[str] | None = None) -> ClusterState:
    """One node's view of the cluster."""
    with raw_client(cluster, node_id) as client:
        return client.metadata(topics)


def wait_ready(
    cluster: Cluster,
    expected: Collection[int] | None = None,
    *,
    timeout_s: float = 60.0,
    poll_s: float = POLL_S,
    alive: Callable[[], None] = lambda: None,
) -> None:
    """Wait until each expected node answers and names all of them as alive. `alive` raises when waiting is in vain."""
    expected = set(expected if expected is not None else cluster.node_ids)
    for node_id in sorted(expected):

        def sees_all(node_id: int = node_id) -> bool:
            alive()
            return expected <= metadata(cluster, node_id, ()).brokers.keys()

        what = f"{cluster.name}: node {node_id} sees {sorted(expected)}"
        wait_for(sees_all, what, timeout_s=timeout_s, poll_s=poll_s)


def wait_in_sync(cluster: Cluster, topic: str, *, timeout_s: float = 60.0) -> ClusterState:
    """Wait until every running node tells that all partitions have a leader and all replicas in the ISR.

    Every node, because a client may ask any of them next, and their metadata need not arrive at once.
    """

    def in_sync() -> ClusterState | None:
        state = None
        for node_id in cluster.node_ids:
            if cluster.pid(node_id) is None:
                continue
            state = metadata(cluster, node_id, (topic,))
            partitions = state.topics.get(topic, ())
            if not partitions or any(
                partition.leader < 0 or sorted(partition.isr) != sorted(partition.replicas) for partition in partitions
            ):
                return None
        return state

    return wait_for(in_sync, f"{cluster.name}: {topic} fully in sync", timeout_s=timeout_s)


def active_controller(cluster: Cluster) -> int:
    """The id of the active controller as any live node tells it, -1 if none does."""
    for node_id in cluster.node_ids:
        if cluster.pid(node_id) is None:
            continue
        try:
            with raw_client(cluster, node_id) as client:
                leader = client.quorum_leader()
        except (OSError, ProtocolError):
            continue
        if leader >= 0:
            return leader
    return -1


def cpu_seconds(pids: Collection[int]) -> float:
    """User and system time the processes have used so far, all threads, ended ones included."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / CLOCK_TICKS_PER_S


def resident_bytes(pids: Collection[int]) -> int:
    """Resident set size of the processes together."""
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES for pid in pids)


def pids(cluster: Cluster) -> list[int]:
    """Processes of all the nodes that run."""
    return [pid for node_id in cluster.node_ids if (pid := cluster.pid(node_id)) is not None]
