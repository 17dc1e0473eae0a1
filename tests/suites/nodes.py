"""Nodes that a suite starts, of tanist or of Apache Kafka, from the same properties.

`SecuredNodes` have each kind of listener that tests of security come to: between nodes SASL, for clients on SSL a
certificate, and an authorizer that lets everybody do what no entry is about and `admin` everything, as the suites' own
scripts set it up.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from tanist.security.jaas import PLAIN_MODULE, SCRAM_MODULE
from tests.interop import apache
from tests.interop.cluster import HOST, Cluster, free_ports, wait_ready
from tests.interop.tanist_cluster import TanistNode, tanist

ADMIN: Final = "admin"
ACLS: Final = "org.apache.kafka.tools.AclCommand"
START_S: Final = 300.0
END_S: Final = 8.0
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(slots=True)
class Nodes:
    """Combined nodes, ids from 1."""

    name: str
    """The target."""
    folder: Path
    listeners: Mapping[str, str]
    """Protocols by name, the controllers' and one without security among them."""
    between: str
    """The listener between brokers."""
    nodes: int = 3
    more: Mapping[str, str] = field(default_factory=dict)
    java: Sequence[str] = ()
    """Flags of Apache Kafka's process."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """By listener, where they are given: of the first node."""
    _first_port: int = field(init=False)
    _processes: dict[int, subprocess.Popen[bytes] | TanistNode] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._first_port = free_ports(self.nodes * len(self.listeners))

    @property
    def node_ids(self) -> Sequence[int]:
        return tuple(range(1, self.nodes + 1))

    def address(self, node_id: int) -> tuple[str, int]:
        plain = next(name for name, protocol in self.listeners.items() if protocol == "PLAINTEXT")
        return HOST, self.port(node_id, plain)

    def port(self, node_id: int, listener: str) -> int:
        if listener in self.ports:
            return self.ports[listener] + node_id - 1
        return self._first_port + (node_id - 1) * len(self.listeners) + list(self.listeners).index(listener)

    def bootstrap(self, listener: str) -> str:
        return ",".join(f"{HOST}:{self.port(node_id, listener)}" for node_id in self.node_ids)

    def log(self, node_id: int) -> Path:
        return self._file(node_id).with_name("tanist.log" if self.name == "tanist" else "server.log")

    def _file(self, node_id: int) -> Path:
        return self.folder / f"node-{node_id}" / "server.properties"

    def properties(self, node_id: int) -> dict[str, str]:
        """The node's file."""
        replicas, least = str(min(3, self.nodes)), str(min(2, self.nodes))
        voters = [f"{each}@{HOST}:{self.port(each, 'CONTROLLER')}" for each in self.node_ids]
        return {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "listeners": ",".join(f"{name}://{HOST}:{self.port(node_id, name)}" for name in self.listeners),
            "listener.security.protocol.map": ",".join(":".join(each) for each in self.listeners.items()),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": self.between,
            "controller.quorum.voters": ",".join(voters),
            "log.dirs": str(self._file(node_id).with_name("data")),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": least,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": least,
            **self.more,
        }

    def start(self) -> None:
        """Format and start; returns when all nodes serve."""
        new_id = tanist("random-uuid").strip() if self.name == "tanist" else apache.random_cluster_id()
        for node_id in self.node_ids:
            file = self._file(node_id)
            file.parent.mkdir(parents=True)
            file.write_text("".join(f"{name}={value}\n" for name, value in self.properties(node_id).items()))
            if self.name == "tanist":
                tanist("format", "-c", str(file), "-t", new_id)
            else:
                apache.tool(apache.STORAGE, "format", "-c", str(file), "-t", new_id)
        try:
            for node_id in self.node_ids:
                self.start_node(node_id)
            wait_ready(cast(Cluster, self), timeout_s=START_S, alive=self._check_alive)
        except BaseException:
            self.stop()
            raise

    def start_node(self, node_id: int) -> None:
        file = self._file(node_id)
        if self.name == "tanist":
            node = TanistNode(file)
            node.start_node(node_id)
            self._processes[node_id] = node
            return
        flags = ("-Xmx512m", *self.java, *apache.SERVER_FLAGS)
        command = apache.java_command(apache.SERVER, str(file), flags=flags, logging="server")
        with self.log(node_id).open("ab") as log:
            self._processes[node_id] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def pid(self, node_id: int) -> int | None:
        process = self._processes.get(node_id)
        if isinstance(process, TanistNode):
            return process.pid(node_id)
        return process.pid if process is not None and process.poll() is None else None

    def _check_alive(self) -> None:
        for node_id in self._processes:
            if self.pid(node_id) is None:
                tail = self.log(node_id).read_text(errors="replace").splitlines()[-30:]
                raise AssertionError(f"node {node_id} has ended:\n" + "\n".join(tail))

    def stop_node(self, node_id: int) -> None:
        self._end(self._processes.pop(node_id))

    def stop(self) -> None:
        """End all nodes: Apache Kafka's at once, for the last ones would wait in vain for a quorum."""
        for node in self._processes.values():
            if isinstance(node, subprocess.Popen):
                node.send_signal(signal.SIGTERM)
        while self._processes:
            self._end(self._processes.popitem()[1])

    @staticmethod
    def _end(node: subprocess.Popen[bytes] | TanistNode) -> None:
        if isinstance(node, TanistNode):
            node.stop()
            return
        node.terminate()
        try:
            node.wait(END_S)
        except subprocess.TimeoutExpired:
            node.kill()
            node.wait()


SECURED: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "CONTROLLER": "SASL_PLAINTEXT",
}


@dataclass(slots=True)
class SecuredNodes(Nodes):
    """Nodes that ask who somebody is."""

    listeners: Mapping[str, str] = field(default_factory=lambda: SECURED)
    between: str = "SASL_PLAINTEXT"
    stores: Mapping[str, str] = field(kw_only=True)
    """The properties of key and trust stores."""
    users: Mapping[str, str] = field(kw_only=True)
    """Passwords of PLAIN; `admin` is one of them."""

    def properties(self, node_id: int) -> dict[str, str]:
        users = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
        jaas = {"plain": f'{PLAIN_MODULE} required username="{ADMIN}" password="{self.users[ADMIN]}" {users};'}
        jaas |= {mechanism.lower(): f"{SCRAM_MODULE} required;" for mechanism in SCRAM}
        modules = {
            f"listener.name.{name.lower()}.{mechanism}.sasl.jaas.config": module
            for name, protocol in self.listeners.items()
            if protocol.startswith("SASL")
            for mechanism, module in jaas.items()
        }
        return {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN}",
            "allow.everyone.if.no.acl.found": "true",
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM)),
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "ssl.client.auth": "required",
            **modules,
            **self.stores,
            **Nodes.properties(self, node_id),
        }

    def add_scram_user(self, user: str, password: str) -> None:
        """As anybody may, before there is an entry about the cluster. A request may have a user once."""
        for mechanism in SCRAM:
            apache.tool(
                apache.CONFIGS, "--bootstrap-server", self.bootstrap("PLAINTEXT"), "--alter", "--entity-type", "users",
                "--entity-name", user, "--add-config", f"{mechanism}=[iterations=4096,password={password}]",
            )  # fmt: skip
