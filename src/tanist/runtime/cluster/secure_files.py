"""The folder `secure` of a cluster that `tanist up --secure` has made: its authority, certificates, users and the
configurations that clients take.

Owns what lies there and how it is written: keys and passwords for the owner's eyes only (0600), each file whole. The
settings of the nodes that use it are `layout`'s.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tanist.client.security import ClientSecurity
from tanist.log.properties import encode_properties, parse_properties
from tanist.runtime.client.identity import security_by
from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.runtime.ports.files import replace_file
from tanist.wire.acls import AclOperation, AclPermission, PatternType, ResourceType

if TYPE_CHECKING:
    from tanist.controller.image.acls import Acl

FOLDER: Final = "secure"
CONTROLLER_LISTENER: Final = "CONTROLLER"
CLIENT_LISTENER: Final = "SASL_SSL"
MECHANISM: Final = "SCRAM-SHA-512"
ADMIN: Final = "admin"
"""May do everything."""
APP: Final = "app"
"""May use topics, groups and transactional ids whose names begin with its own."""
NODES_USER: Final = "tanist-node"
"""The brokers among each other."""
USERS: Final = (ADMIN, APP, NODES_USER)

_LOCAL: Final = ("localhost", "127.0.0.1", "::1", "host.docker.internal")
"""What people dial to reach this machine, from it and from a container on it."""
_PRIVATE: Final = 0o600
_PASSWORD_BYTES: Final = 18
_TOKENS: Final = "delegation-tokens"
"""The secret of which the nodes make delegation tokens; it has a file as a user's password has."""
_WATCH_MS: Final = 1_000
"""A node takes a renewed certificate by then."""


@dataclass(frozen=True, slots=True)
class CertificateState:
    """A certificate of the folder, by its file."""

    path: Path
    expires: datetime

    def days_left(self, now: datetime) -> int:
        """Whole days; negative once it has expired."""
        return (self.expires - now).days


class SecureFiles:
    """The files of one cluster."""

    def __init__(self, folder: Path, *, portable: bool = False) -> None:
        """`folder` is the cluster's. `portable`: clients of other machines take the settings for Java as they are,
        without the authority's file.
        """
        self.folder = folder / FOLDER
        self._portable = portable

    # -- making them

    def make(self, cluster_id: str, nodes: Iterable[int], hosts: Iterable[str], bootstrap: str) -> None:
        """Everything, for a new cluster: what is there is left, so that a second call changes nothing. A certificate
        that lacks a host is made anew.
        """
        from tanist.runtime.cluster import certificates  # cryptography, of which most commands have no use

        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)  # so that a file is nobody else's to read before it has its own mode
        now = certificates.now_utc()
        if not self.authority_path.exists():
            made = certificates.authority(f"tanist {cluster_id}", now)
            self._write("ca.key", made.key)
            self._write("ca.pem", made.certificate, mode=0o644)
            self._write("truststore.p12", certificates.as_trust_store(made, self._store_password()))
        wanted = [*hosts, *_LOCAL]
        for node_id in nodes:
            path = self.node_path(node_id)
            if not path.exists() or not set(certificates.hosts_of(path.read_bytes())).issuperset(wanted):
                self._issue(_name_of(node_id), wanted, certificates.CERTIFICATE_LIFE)
        if not (self.folder / f"{ADMIN}.pem").exists():
            self._issue(ADMIN, (), certificates.CERTIFICATE_LIFE)
        for user in (*USERS, _TOKENS):
            if not self._password_path(user).exists():
                self._write(f"{user}.password", secrets.token_urlsafe(_PASSWORD_BYTES).encode())
        self.write_clients(bootstrap)

    def renew(self, nodes: Iterable[int], life: timedelta | None = None) -> list[Path]:
        """New certificates for these nodes, with the hosts of the old ones. Brokers take them without a restart."""
        from tanist.runtime.cluster import certificates

        renewed = []
        for node_id in nodes:
            path = self.node_path(node_id)
            try:
                hosts = certificates.hosts_of(path.read_bytes())
            except (OSError, ValueError) as error:
                raise ClusterError(f"{path} cannot be read: {error}") from None
            self._issue(_name_of(node_id), hosts, certificates.CERTIFICATE_LIFE if life is None else life)
            renewed.append(path)
        return renewed

    def certificates(self) -> list[CertificateState]:
        """Those of the authority and the nodes, by their names."""
        from tanist.runtime.cluster import certificates

        found = []
        for path in sorted(self.folder.glob("*.pem")):
            try:
                found.append(CertificateState(path, certificates.expires(path.read_bytes())))
            except (OSError, ValueError) as error:
                raise ClusterError(f"{path} cannot be read: {error}") from None
        return found

    def expires(self, node_id: int) -> datetime:
        """When the node's certificate ends."""
        from tanist.runtime.cluster import certificates

        return certificates.expires(self.node_path(node_id).read_bytes())

    def _issue(self, name: str, hosts: Iterable[str], life: timedelta) -> None:
        from tanist.runtime.cluster import certificates

        by = certificates.Certified(self.authority_path.read_bytes(), (self.folder / "ca.key").read_bytes())
        made = certificates.issue(by, name, hosts, certificates.now_utc(), life)
        self._write(f"{name}.pem", made.pem)

    # -- what lies there

    @property
    def authority_path(self) -> Path:
        return self.folder / "ca.pem"

    def node_path(self, node_id: int) -> Path:
        return self.folder / f"{_name_of(node_id)}.pem"

    def password(self, user: str) -> str:
        """`ClusterError` if the folder has no such user."""
        try:
            return self._password_path(user).read_text()
        except OSError as error:
            raise ClusterError(f"{self._password_path(user)} cannot be read: {error.strerror}") from None

    def keep_password(self, user: str, password: str) -> None:
        """Note the password of a user that was made later, for its clients' settings."""
        self._write(f"{user}.password", password.encode())

    def _password_path(self, user: str) -> Path:
        return self.folder / f"{user}.password"

    def _store_password(self) -> str:
        path = self._password_path("truststore")
        if not path.exists():
            self._write(path.name, secrets.token_urlsafe(_PASSWORD_BYTES).encode())
        return path.read_text()

    def client_config(self, user: str) -> Path:
        """Kafka's properties for a user: for `--client-config`, Java's clients and Kafka's own tools."""
        return self.folder / f"{user}.properties"

    # -- what nodes take

    def node_properties(
        self,
        node_id: int,
        nodes: Iterable[int],
        *,
        listeners: Iterable[str] = (CLIENT_LISTENER,),
        controllers: Iterable[str] = (CONTROLLER_LISTENER,),
    ) -> dict[str, str]:
        """The settings by which a node of the cluster proves who it is, and asks others.

        Clients authenticate by SCRAM on the brokers' listener, and so do the brokers among each other. Controllers
        take certificates: their users' credentials are in the log that they are about to read.
        """
        logins = (f"listener.name.{each.lower()}.{MECHANISM.lower()}.sasl.jaas.config" for each in listeners)
        principals = [
            f"User:{ADMIN}",
            f"User:CN={ADMIN}",
            f"User:{NODES_USER}",
            *(f"User:CN={_name_of(each)}" for each in nodes),
        ]
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.node_path(node_id)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority_path),
            "tanist.ssl.watch.interval.ms": str(_WATCH_MS),
            **{f"listener.name.{each.lower()}.ssl.client.auth": "required" for each in controllers},
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            **dict.fromkeys(logins, self._login(NODES_USER)),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(principals),
            "delegation.token.secret.key": self.password(_TOKENS),
        }

    def scram_arguments(self) -> list[str]:
        """The users that the cluster begins with, as `--add-scram` takes them."""
        return [f"{MECHANISM}=[name={user},password={self.password(user)}]" for user in USERS]

    def acls(self) -> list[Acl]:
        """What its users may do from the beginning; super users need no entry."""
        from tanist.controller.image.acls import Acl

        kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
        rest = (PatternType.PREFIXED, f"User:{APP}", "*", AclOperation.ALL, AclPermission.ALLOW)
        return [Acl(kind, APP, *rest) for kind in kinds]

    def _login(self, user: str) -> str:
        return (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{user}" password="{self.password(user)}";'
        )

    # -- as whom commands ask

    def properties_of(self, user: str) -> Mapping[str, str]:
        """What a user's configuration says. `ClusterError`."""
        path = self.client_config(user)
        try:
            return parse_properties(path.read_text())
        except (OSError, ValueError) as error:
            raise ClusterError(f"{path} cannot be read: {error}") from None

    def to_brokers(self, user: str) -> ClientSecurity:
        """As a user, by its configuration. `ClusterError`."""
        try:
            return security_by(self.properties_of(user))
        except ValueError as error:
            raise ClusterError(f"{self.client_config(user)}: {error}") from None

    def to_controllers(self) -> ClientSecurity:
        """As the administrator, by its certificate: controllers take no passwords."""
        return ClientSecurity(
            tls={
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.authority_path),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.folder / f"{ADMIN}.pem"),
            }
        )

    # -- what clients take

    def write_clients(self, bootstrap: str) -> None:
        """The ready configurations of the users, for each kind of client."""
        for user in (ADMIN, APP):
            self._write(
                self.client_config(user).name, encode_properties(self.kafka_properties(user, bootstrap)).encode()
            )
            self._write(f"{user}.librdkafka.conf", _equals(self.librdkafka(user, bootstrap)).encode())
            self._write(f"{user}.py", self._python(user, bootstrap).encode())

    def kafka_properties(self, user: str, bootstrap: str) -> dict[str, str]:
        trusted = ("location", str(self.authority_path))
        if self._portable:
            trusted = ("certificates", self.authority_path.read_text())
        return {
            "bootstrap.servers": bootstrap,
            "security.protocol": CLIENT_LISTENER,
            "ssl.truststore.type": "PEM",
            f"ssl.truststore.{trusted[0]}": trusted[1],
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": self._login(user),
        }

    def librdkafka(self, user: str, bootstrap: str) -> dict[str, str]:
        """For confluent-kafka, kcat (`-F FILE`) and everything else that librdkafka is in."""
        return {
            "bootstrap.servers": bootstrap,
            "security.protocol": CLIENT_LISTENER.lower(),
            "ssl.ca.location": str(self.authority_path),
            "sasl.mechanisms": MECHANISM,
            "sasl.username": user,
            "sasl.password": self.password(user),
        }

    def kafka_python(self, user: str, bootstrap: str) -> dict[str, str]:
        """kafka-python's arguments, and nearly aiokafka's."""
        return {
            "bootstrap_servers": bootstrap,
            "security_protocol": CLIENT_LISTENER,
            "ssl_cafile": str(self.authority_path),
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": user,
            "sasl_plain_password": self.password(user),
        }

    def _python(self, user: str, bootstrap: str) -> str:
        arguments = self.kafka_python(user, bootstrap)
        lines = [f"    {name!r}: {value!r}," for name, value in arguments.items()]
        return "\n".join(
            [
                '"""Arguments of kafka-python: `KafkaProducer(**settings)`. aiokafka takes an `ssl_context` instead of',
                '`ssl_cafile`: `aiokafka.helpers.create_ssl_context(cafile=...)`."""',
                "",
                "settings = {",
                *lines,
                "}",
                "",
            ]
        )

    def _write(self, name: str, content: bytes, mode: int = _PRIVATE) -> None:
        path = self.folder / name
        replace_file(str(path), content)
        path.chmod(mode)


def _name_of(node_id: int) -> str:
    return f"node-{node_id}"


def _equals(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())
