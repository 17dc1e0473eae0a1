"""Where to ask a cluster of processes, and as whom: the brokers that are most likely to answer, and to know.

It reads `cluster.json`, the faults that are set and the files of a secure cluster, and contacts nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tanist.client.security import ClientSecurity
from tanist.runtime.client.client import Client, format_bootstrap
from tanist.runtime.client.connection import ANYBODY
from tanist.runtime.cluster.cluster_file import ClusterFile, NodeEntry
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.cluster.secure_files import ADMIN, SecureFiles


def address_of(cluster: ClusterFile, node: NodeEntry) -> tuple[str, int]:
    return cluster.host, node.broker_port or node.controller_port


def addresses_of(cluster: ClusterFile, folder: Path | None = None) -> list[tuple[str, int]]:
    """Where to ask: the running brokers, or all of them if none runs. One that is paused would let us wait.

    With the data folder, those that least is wrong with come first: what an isolated broker tells is old.
    """
    return [(cluster.host, node.broker_port) for node in askable(cluster, folder) or cluster.brokers]


def askable(cluster: ClusterFile, folder: Path | None = None) -> list[NodeEntry]:
    """The brokers that run and are not paused, in the order of `addresses_of`."""
    running = [node for node in cluster.running if node.is_broker and not node.paused]
    if folder is not None:
        faults = FaultRequests(folder).present()
        running.sort(key=lambda node: faults.isolation(node.node_id))
    return running


def bootstrap_of(cluster: ClusterFile) -> str:
    return format_bootstrap(addresses_of(cluster))


def properties_to_brokers(cluster: ClusterFile, folder: Path) -> Mapping[str, str]:
    """The administrator's properties of a Kafka client, for what makes clients of its own. `ClusterError`."""
    return SecureFiles(folder).properties_of(ADMIN) if cluster.secure else {}


def to_brokers(cluster: ClusterFile, folder: Path) -> ClientSecurity:
    """As whom a command asks brokers: the administrator of a secure cluster. `ClusterError`."""
    return SecureFiles(folder).to_brokers(ADMIN) if cluster.secure else ANYBODY


def to_controllers(cluster: ClusterFile, folder: Path) -> ClientSecurity:
    """As whom a command asks controllers. `ClusterError`."""
    return SecureFiles(folder).to_controllers() if cluster.secure else ANYBODY


def client_of(cluster: ClusterFile, folder: Path, *, client_id: str = "tanist", timeout_s: float = 30.0) -> Client:
    """A client of the cluster in a data folder."""
    addresses, security = addresses_of(cluster, folder), to_brokers(cluster, folder)
    return Client(addresses, client_id=client_id, timeout_s=timeout_s, security=security)
