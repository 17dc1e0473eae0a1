"""A node in a process of its own that lets nobody in who has no password, and clients of it that are nobody."""

from __future__ import annotations

import ssl
from pathlib import Path

from tanist.security.jaas import PLAIN_MODULE, SCRAM_MODULE
from tanist.wire.frames import encode_request
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tanist.wire.schema import Request
from tests.certificates import CertificateAuthority, pem
from tests.interop.cluster import HOST, free_ports
from tests.interop.raw import RawClient
from tests.interop.tanist_cluster import TanistNode, tanist
from tests.interop.waiting import wait_for

TIMEOUT_S = 120.0
_PLAIN = f'{PLAIN_MODULE} required username="node" password="node-secret" user_node="node-secret";'
_SCRAM = f"{SCRAM_MODULE} required;"
LISTENERS = {
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
    "MUTUAL": "SSL",
    "CONTROLLER": "SASL_PLAINTEXT",
    "CONTROLLERTLS": "SASL_SSL",
}
WITH_SASL = [name for name, protocol in LISTENERS.items() if protocol.startswith("SASL")]


class GuardedNode:
    """One node. `more`: properties, with two underscores for a dot."""

    def __init__(self, folder: Path, **more: str) -> None:
        authority = CertificateAuthority()
        first = free_ports(len(LISTENERS))
        self.ports = {name: first + number for number, name in enumerate(LISTENERS)}
        self.tls = ssl.create_default_context(cadata=pem(authority.certificate))
        listener_lines = {}
        for name in WITH_SASL:
            prefix = f"listener.name.{name.lower()}"
            listener_lines[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256"
            listener_lines[f"{prefix}.plain.sasl.jaas.config"] = _PLAIN
            listener_lines[f"{prefix}.scram-sha-256.sasl.jaas.config"] = _SCRAM
        controllers = [name for name in LISTENERS if name.startswith("CONTROLLER")]
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
            "controller.listener.names": ",".join(controllers),
            "inter.broker.listener.name": "SASL",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "controller.quorum.voters": f"1@{HOST}:{self.ports['CONTROLLER']}",
            "log.dirs": str(folder / "data"),
            "listener.name.mutual.ssl.client.auth": "required",
            "connection.failed.authentication.delay.ms": "0",
            **listener_lines,
            **{name.replace("__", "."): value for name, value in more.items()},
            **authority.issue("node").pem_files(folder),
        }
        file = folder / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        tanist("format", "-c", str(file), "-t", tanist("random-uuid").strip(),
               "--add-scram", "SCRAM-SHA-256=[name=alice,password=alice-secret]")  # fmt: skip
        self.process = TanistNode(file)

    def start(self) -> None:
        self.process.start_node(1)
        wait_for(lambda: self._lets_in("SASL"), "the node serves", timeout_s=TIMEOUT_S)

    def _lets_in(self, listener: str) -> bool:
        self.process._check_alive()
        with self.dial(listener) as client:
            log_in(client)
            return bool(client.metadata(()).brokers)

    def dial(self, listener: str) -> RawClient:
        client = RawClient(HOST, self.ports[listener], timeout_s=TIMEOUT_S)
        if LISTENERS[listener].endswith("SSL"):
            client.over_tls(self.tls)
        return client


def ask(client: RawClient, request: Request, version: int) -> bytes:
    return client.exchange(encode_request(request, version, 1, "stranger"))


def log_in(client: RawClient) -> None:
    """With the right password."""
    ask(client, SaslHandshakeRequest(mechanism="PLAIN"), 1)
    ask(client, SaslAuthenticateRequest(auth_bytes=b"\0node\0node-secret"), 1)
