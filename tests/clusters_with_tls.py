"""Clusters of real processes whose listeners all have TLS, each node with a certificate of its own."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.certificates import CertificateAuthority, Issued, pem
from tests.interop.cluster import HOST, free_ports
from tests.interop.tanist_cluster import TanistNode, tanist
from tests.interop.waiting import wait_for

_READY = " is unfenced"
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


class TlsCluster:
    """Combined nodes, ids from 1. Between them, and for controllers, certificates are required."""

    def __init__(
        self, folder: Path, nodes: int = 3, *, client_auth: str = "none", more: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.authority = CertificateAuthority()
        first = free_ports(nodes * 2)
        self.node_ids = tuple(range(1, nodes + 1))
        self._ports = {node_id: first + 2 * (node_id - 1) for node_id in self.node_ids}
        self.nodes: dict[int, TanistNode] = {}
        voters = ",".join(f"{node_id}@{HOST}:{port + 1}" for node_id, port in self._ports.items())
        for node_id in self.node_ids:
            home = folder / f"node-{node_id}"
            home.mkdir()
            port = self._ports[node_id]
            properties = {
                "process.roles": "broker,controller",
                "node.id": str(node_id),
                "listeners": f"CLIENTS://{HOST}:{port},CONTROLLER://{HOST}:{port + 1}",
                "listener.security.protocol.map": "CLIENTS:SSL,CONTROLLER:SSL",
                "controller.listener.names": "CONTROLLER",
                "inter.broker.listener.name": "CLIENTS",
                "controller.quorum.voters": voters,
                "log.dirs": str(home / "data"),
                "offsets.topic.replication.factor": str(min(3, nodes)),
                "transaction.state.log.replication.factor": str(min(3, nodes)),
                "transaction.state.log.min.isr": "1",
                "group.initial.rebalance.delay.ms": "0",
                "listener.name.controller.ssl.client.auth": "required",
                "ssl.client.auth": client_auth,
                **self.issued(f"node-{node_id}").pem_files(home),
                **(more or {}),
            }
            file = home / "server.properties"
            file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
            self.nodes[node_id] = TanistNode(file)
            tanist("format", "--config", str(file), "--cluster-id", CLUSTER_ID)

    def issued(self, name: str) -> Issued:
        return self.authority.issue(name)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self._ports.values())

    def port(self, node_id: int) -> int:
        return self._ports[node_id]

    def log(self, node_id: int) -> str:
        with suppress(FileNotFoundError):
            return (self.folder / f"node-{node_id}" / "tanist.log").read_text(errors="replace")
        return ""

    def start(self, *node_ids: int) -> None:
        """Start these nodes (all, if none is named), and wait until their brokers serve."""
        started = node_ids or self.node_ids
        before = {node_id: self.log(node_id).count(_READY) for node_id in started}
        for node_id in started:
            self.nodes[node_id].start_node(node_id)
        for node_id in started:
            wait_for(partial(self._is_ready, node_id, before[node_id]), f"node {node_id} serves")

    def _is_ready(self, node_id: int, before: int) -> bool:
        if self.nodes[node_id].pid(node_id) is None:
            raise AssertionError(f"node {node_id} has ended:\n{self.log(node_id)[-3000:]}")
        return self.log(node_id).count(_READY) > before

    def until_logged(self, node_id: int, text: str, what: str = "") -> None:
        wait_for(lambda: text in self.log(node_id), f"{what or text} in the log of node {node_id}")

    def kill(self, node_id: int) -> None:
        self.nodes[node_id].kill_node(node_id)

    def stop(self) -> None:
        for node in self.nodes.values():
            node.stop()

    @property
    def trusted(self) -> Path:
        """The certificate of the authority."""
        path = self.folder / "ca.pem"
        if not path.exists():
            path.write_text(pem(self.authority.certificate))
        return path

    def client(self, name: str, **how: Any) -> Path:
        """A key and a certificate, in one file."""
        issued = self.authority.issue(name, **how)
        path = self.folder / f"{name}.pem"
        path.write_text(issued.key_pem() + issued.chain_pem)
        return path

    def librdkafka(self, own: Path | None = None, **settings: Any) -> dict[str, Any]:
        """What a client of confluent-kafka is configured by."""
        shown = {} if own is None else {"ssl.key.location": str(own), "ssl.certificate.location": str(own)}
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.trusted),
            "log_level": 0,
            **shown,
            **settings,
        }

    def context(self, own: Path | None = None) -> ssl.SSLContext:
        """What Python's clients are configured by."""
        context = ssl.create_default_context(cafile=str(self.trusted))
        if own is not None:
            context.load_cert_chain(str(own))
        return context
