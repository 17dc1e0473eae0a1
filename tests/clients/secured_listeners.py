"""One node with a listener for each way in, an authorizer, and what its clients are configured by.

By TLS, by a certificate, by each mechanism of SASL inside TLS; and a listener whose certificate has expired. Alice may
do all with what begins with `open`, and so may who is not named; `seen` she may describe, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tanist.broker.sasl_properties import SECURED
from tests.certificates import CertificateAuthority, pem
from tests.clients.secured import MECHANISMS, OAUTH, PASSWORDS, PLAIN, SCRAM, SaslNode, bearer_token, served
from tests.interop.cluster import HOST, free_ports

LISTENERS: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "SASL": "SASL_SSL",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SSL",
    "NODES": "SASL_PLAINTEXT",
    "CONTROLLER": "SASL_PLAINTEXT",
}
WAYS: Final = ("TLS", "mTLS", *MECHANISMS, "OAUTHBEARER")
"""In which a client can come in."""
OPEN, SEEN, HIDDEN = "open", "seen", "hidden"
"""Names of resources begin with these: what alice may do, see, and neither."""
TIMEOUT_S = 30.0


class ListenersNode(SaslNode):
    """A running node, its authorities and its clients' files."""

    def __init__(self, name: str, folder: Path) -> None:
        first = free_ports(len(LISTENERS))
        self._ports = {listener: first + number for number, listener in enumerate(LISTENERS)}
        super().__init__(name, self._ports["PLAINTEXT"], self._ports["SASL"])
        self.folder = folder
        self.authority = CertificateAuthority()
        self.trusted = self._written("ca.pem", pem(self.authority.certificate))

    def _written(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def properties(self) -> dict[str, str]:
        """The node's file."""
        port = self._ports
        stores = {name: self.authority.issue("node").pem_files(self.folder) for name in ("sasl", "tls", "mutual")}
        stores["expired"] = self.authority.issue("node", days=(-3, -1)).pem_files(self.folder, "expired")
        tls = {
            f"listener.name.{listener}.{name}": value
            for listener, store in stores.items()
            for name, value in store.items()
        }
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": ",".join(f"{listener}://{HOST}:{port[listener]}" for listener in LISTENERS),
            "listener.security.protocol.map": ",".join(":".join(item) for item in LISTENERS.items()),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "NODES",
            "controller.quorum.voters": f"1@{HOST}:{port['CONTROLLER']}",
            "log.dirs": str(self.folder / "data"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:node;User:admin",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "3",
            "group.initial.rebalance.delay.ms": "0",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.nodes.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.nodes.plain.sasl.jaas.config": PLAIN,
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": PLAIN,
            "listener.name.sasl.sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
            "listener.name.sasl.plain.sasl.jaas.config": PLAIN,
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": SCRAM,
            "listener.name.sasl.scram-sha-512.sasl.jaas.config": SCRAM,
            "listener.name.sasl.oauthbearer.sasl.jaas.config": OAUTH,
            "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class": SECURED,
            "listener.name.sasl.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": f"file://{self.folder}/jwks.json",
            "listener.name.sasl.oauthbearer.sasl.oauthbearer.expected.audience": "kafka",
            "listener.name.mutual.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": r"RULE:^CN=([^,]+),.*$/$1/,DEFAULT",
            **tls,
        }

    def at(self, listener: str) -> dict[str, Any]:
        """The settings by which a client's program comes to a listener, and trusts the authority."""
        address = f"{HOST}:{self._ports[listener]}"
        return {"bootstrap": address, "protocol": LISTENERS[listener], "ca": self.trusted}

    def way(self, way: str, **changes: str) -> dict[str, Any]:
        """The settings of a client's program that comes in this way: as alice, but for TLS."""
        if way == "TLS":
            return {**self.at("TLS"), **changes}
        if way == "mTLS":
            return {**self.at("MUTUAL"), "certificate": self.certificate("alice"), **changes}
        by = {"token": bearer_token()} if way == "OAUTHBEARER" else {"username": "alice", "password": PASSWORDS[way]}
        return {**self.at("SASL"), "mechanism": way, **by, **changes}

    def certificate(self, name: str, authority: CertificateAuthority | None = None, **how: Any) -> str:
        """The file of a key and a certificate."""
        issued = (authority or self.authority).issue(name, **how)
        return self._written(f"{name}.pem", issued.key_pem() + issued.chain_pem)

    def foreign_authority(self) -> str:
        """The file of an authority that has issued nothing here."""
        return self._written("foreign.pem", pem(CertificateAuthority("another").certificate))


def _prepare(node: ListenersNode) -> None:
    """Topics and entries, made by a super user."""
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        AdminClient,
        NewTopic,
        ResourcePatternType,
        ResourceType,
    )

    admin = AdminClient(
        {
            "bootstrap.servers": node.bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": node.trusted,
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "admins",
        }
    )
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in (SEEN, HIDDEN)]).values():
        future.result(TIMEOUT_S)
    resources = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    acls = [
        AclBinding(kind, OPEN, ResourcePatternType.PREFIXED, user, "*", AclOperation.ALL, AclPermissionType.ALLOW)
        for kind in resources
        for user in ("User:alice", "User:ANONYMOUS")
    ]
    literal = ResourcePatternType.LITERAL
    acls.append(
        AclBinding(ResourceType.TOPIC, SEEN, literal, "User:alice", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW)
    )
    for future in admin.create_acls(acls).values():
        future.result(TIMEOUT_S)


@contextmanager
def listening(target: str, folder: Path) -> Iterator[ListenersNode]:
    """The node runs, and its topics and entries are there."""
    node = ListenersNode(target, folder)
    with served(node, folder, node.properties()):
        _prepare(node)
        yield node
