"""The security of a cluster made with `secure=True`: what clients need to get in, and what can go wrong with it.

Each operation returns when the brokers do what it says.
"""

from __future__ import annotations

import socket
import ssl
import time
from datetime import timedelta
from functools import partial
from typing import Literal, TypeAlias

from tanist.client.acls import AclEntry
from tanist.runtime.client.acls import create_acls, delete_acls
from tanist.runtime.client.client import Client, format_bootstrap
from tanist.runtime.client.client_quotas import alter_quotas
from tanist.runtime.client.users import remove_user, set_password
from tanist.runtime.cluster import cluster as runtime
from tanist.runtime.cluster.addresses import client_of
from tanist.runtime.cluster.cluster_file import ClusterError, ClusterFile, NodeEntry, load_existing
from tanist.runtime.cluster.processes import wait_until
from tanist.runtime.cluster.secure_files import APP, MECHANISM, SecureFiles
from tanist.testing.errors import as_cluster_errors
from tanist.wire.acls import CLUSTER_NAME, AclOperation, AclPermission, PatternType, ResourceType

ClientKind: TypeAlias = Literal["librdkafka", "java", "kafka-python"]

_PATIENCE_S = 30.0
_SHORT_LIFE = timedelta(seconds=3)
"""Of a certificate that is to expire: a broker takes none that has expired already."""


class Security:
    """Certificates, users, permissions and quotas of one cluster."""

    def __init__(self, local: runtime.LocalCluster) -> None:
        self._local = local
        self._files = SecureFiles(local.folder)

    def client(self, kind: ClientKind = "librdkafka", user: str = APP) -> dict[str, str]:
        """The settings by which a client gets in as this user, bootstrap.servers included.

        `app` may use what begins with `app`, `admin` everything; others are those of `add_user`. "librdkafka" is for
        confluent-kafka too.
        """
        file = self._file
        bootstrap = format_bootstrap((file.host, node.broker_port) for node in file.brokers)
        settings = {
            "librdkafka": self._files.librdkafka,
            "java": self._files.kafka_properties,
            "kafka-python": self._files.kafka_python,
        }
        if kind not in settings:
            raise ValueError(f"client: kind is one of {', '.join(settings)}, not {kind!r}")
        return settings[kind](user, bootstrap)

    # -- users

    def add_user(self, user: str, password: str) -> None:
        """Make a user, or give one another password. It may do nothing yet: `allow`."""
        with as_cluster_errors(f"add_user({user!r})"), self._client() as client:
            set_password(client, user, MECHANISM, password)
        self._files.keep_password(user, password)

    def revoke(self, user: str) -> None:
        """Nobody gets in as this user any more; connections that it has stay."""
        with as_cluster_errors(f"revoke({user!r})"), self._client() as client:
            remove_user(client, user, MECHANISM)

    def allow(self, principal: str, operation: str, resource: str) -> None:
        """Let a principal do something: `allow("User:alice", "WRITE", "topic:orders")`.

        A resource is `topic:NAME`, `group:NAME`, `transactional-id:NAME` or `cluster`; a name that ends in `*` is a
        prefix. A denial of the same is taken back.
        """
        with as_cluster_errors(f"allow({principal!r})"), self._client() as client:
            delete_acls(client, [_entry(principal, operation, resource, AclPermission.DENY)])
            create_acls(client, [_entry(principal, operation, resource, AclPermission.ALLOW)])

    def deny(self, principal: str, operation: str, resource: str) -> None:
        """Deny a principal something, whatever allows it: `deny("User:app", "READ", "topic:app-orders")`."""
        with as_cluster_errors(f"deny({principal!r})"), self._client() as client:
            create_acls(client, [_entry(principal, operation, resource, AclPermission.DENY)])

    def throttle(self, user: str, **quotas: float | None) -> None:
        """Give a user quotas: `throttle("app", producer_byte_rate=1000)`; None removes one."""
        with as_cluster_errors(f"throttle({user!r})"), self._client() as client:
            alter_quotas(client, {"user": user}, quotas)

    # -- certificates

    def expire_certificate(self, broker: int) -> None:
        """The broker's certificate has expired: handshakes fail from now on, connections stay. `rotate_certificates`
        ends it."""
        self._renew([self._file.node(broker)], _SHORT_LIFE)
        expires = self._files.expires(broker)
        ended_s = expires.timestamp() + 1  # it is good to the end of that second
        if not wait_until(lambda: time.time() >= ended_s, _PATIENCE_S):
            raise ClusterError(f"expire_certificate: the certificate of broker {broker} is good until {expires}")

    def rotate_certificates(self) -> None:
        """Each node has a new certificate of the same authority, and shows it to who comes from now on."""
        self._renew(self._file.nodes, None)

    def _renew(self, nodes: list[NodeEntry], life: timedelta | None) -> None:
        running = [node for node in nodes if node.alive]
        before = {node.node_id: self._shown(node) for node in running}
        self._files.renew([node.node_id for node in nodes], life)
        for node in running:
            if not wait_until(partial(self._shows_another, node, before[node.node_id]), _PATIENCE_S):
                raise ClusterError(f"node {node.node_id} still shows its old certificate: see its log")

    def _shows_another(self, node: NodeEntry, before: bytes | None) -> bool:
        return self._shown(node) not in (None, before)

    def _shown(self, node: NodeEntry) -> bytes | None:
        """The certificate that the node's handshakes begin with, whatever it is worth."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        address = (self._file.host, node.broker_port or node.controller_port)
        try:
            with socket.create_connection(address, _PATIENCE_S) as raw, context.wrap_socket(raw) as secured:
                return secured.getpeercert(binary_form=True)
        except OSError:
            return None

    # -- inner

    @property
    def _file(self) -> ClusterFile:
        return load_existing(self._local.folder)

    def _client(self) -> Client:
        return client_of(self._file, self._local.folder, timeout_s=_PATIENCE_S)


def _entry(principal: str, operation: str, resource: str, permission: AclPermission) -> AclEntry:
    kind, _, name = resource.partition(":")
    try:
        type_ = ResourceType[kind.replace("-", "_").upper()]
        done = AclOperation[operation.replace("-", "_").upper()]
    except KeyError as error:
        raise ValueError(
            f"{error} is not known; a resource is topic:NAME, group:NAME, transactional-id:NAME or cluster, an "
            "operation READ, WRITE, DESCRIBE, CREATE, ALL and so on"
        ) from None
    pattern = PatternType.LITERAL
    if type_ == ResourceType.CLUSTER:
        name = CLUSTER_NAME
    elif len(name) > 1 and name.endswith("*"):
        name, pattern = name[:-1], PatternType.PREFIXED
    return AclEntry(type_, name, pattern, principal, "*", done, permission)
