"""One node with a SASL listener beside a PLAINTEXT one, of tanist or of Apache Kafka, from the same properties file.

Its controllers' listener has SASL too. The users are made by the tool that formats its folders.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from joserfc import jws
from joserfc.jwk import ECKey, KeySet

from tanist.broker.sasl_properties import SECURED
from tanist.security.jaas import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE
from tests.interop import apache
from tests.interop.cluster import HOST, Cluster, free_ports, wait_ready
from tests.interop.tanist_cluster import TanistNode, tanist

PLAIN = (
    f'{PLAIN_MODULE} required username="node" password="node-secret" user_node="node-secret" '
    'user_alice="alice,s" user_admin="admins";'
)
SCRAM = f"{SCRAM_MODULE} required;"
OAUTH = f"{OAUTH_MODULE} required;"
KEY = ECKey.generate_key("P-256", parameters={"kid": "tests"})
"""By which `bearer_token` signs."""
PASSWORDS = {"PLAIN": "alice,s", "SCRAM-SHA-256": "alice-256", "SCRAM-SHA-512": "alice-512"}
"""Alice's, by mechanism."""
MECHANISMS = tuple(PASSWORDS)


class SaslNode:
    """A running node."""

    node_ids = (1,)

    def __init__(self, name: str, plain_port: int, sasl_port: int) -> None:
        self.name = name
        self.plain = f"{HOST}:{plain_port}"
        self.bootstrap = f"{HOST}:{sasl_port}"
        self._port = plain_port

    def address(self, node_id: int) -> tuple[str, int]:
        return HOST, self._port

    def pid(self, node_id: int) -> int | None:
        return None


def _properties(folder: Path, port: int, **more: str) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{port},CLIENTS://{HOST}:{port + 1},CONTROLLER://{HOST}:{port + 2}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.quorum.voters": f"1@{HOST}:{port + 2}",
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
        "group.initial.rebalance.delay.ms": "0",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": PLAIN,
        "delegation.token.secret.key": "secret-of-all",
        "listener.name.clients.sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
        "listener.name.clients.oauthbearer.sasl.jaas.config": OAUTH,
        "listener.name.clients.oauthbearer.sasl.server.callback.handler.class": SECURED,
        "listener.name.clients.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": f"file://{folder}/jwks.json",
        "listener.name.clients.oauthbearer.sasl.oauthbearer.expected.audience": "kafka",
        "listener.name.clients.plain.sasl.jaas.config": PLAIN,
        "listener.name.clients.scram-sha-256.sasl.jaas.config": SCRAM,
        "listener.name.clients.scram-sha-512.sasl.jaas.config": SCRAM,
        **{name.replace("__", "."): value for name, value in more.items()},
    }


def bearer_token(lifetime_s: int = 600, **changes: Any) -> str:
    """A token for alice."""
    now = int(time.time())
    claims = {"sub": "alice", "iat": now, "exp": now + lifetime_s, "aud": "kafka", **changes}
    return jws.serialize_compact({"alg": "ES256", "kid": "tests"}, json.dumps(claims).encode(), KEY)


@contextmanager
def running(target: str, folder: Path, **more: str) -> Iterator[SaslNode]:
    """A node; `more` properties are written with two underscores for a dot."""
    port = free_ports(3)
    node = SaslNode(target, port, port + 1)
    with served(node, folder, _properties(folder, port, **more)):
        yield node


@contextmanager
def served(node: SaslNode, folder: Path, properties: Mapping[str, str]) -> Iterator[None]:
    """The node runs, with alice as a user of SCRAM, from the time when its plain listener answers on."""
    (folder / "jwks.json").write_text(json.dumps(KeySet([KEY]).as_dict(private=False)))
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    users = [
        part
        for mechanism in MECHANISMS[1:]
        for part in ("--add-scram", f"{mechanism}=[name=alice,password={PASSWORDS[mechanism]}]")
    ]
    if node.name == "apache":
        apache.tool(apache.STORAGE, "format", "-c", str(file), "-t", apache.random_cluster_id(), *users)
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://{folder}/jwks.json"
        files = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={folder}/jwks.json"
        flags = ("-Xmx512m", allowed, files, *apache.SERVER_FLAGS)
        command = apache.java_command(apache.SERVER, str(file), flags=flags, logging="server")
        with (folder / "server.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                wait_ready(cast(Cluster, node), timeout_s=180.0)
                yield
            finally:
                process.terminate()
                process.wait(60)
        return
    tanist("format", "-c", str(file), "-t", tanist("random-uuid").strip(), *users)
    process_of = TanistNode(file)
    process_of.start()
    try:
        yield
    finally:
        process_of.stop()
