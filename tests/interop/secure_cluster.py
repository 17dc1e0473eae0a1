"""The cluster of `tanist up --secure`: TLS everywhere, SCRAM among brokers and for clients, an authorizer."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any

from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.secure_files import ADMIN, APP, SecureFiles
from tanist.testing.security import Security
from tests.interop.raw import RawClient
from tests.interop.tanist_cluster import TanistCluster


@dataclass(slots=True)
class SecureCluster(TanistCluster):
    """Its clients are the user `app`, who may read and write all topics, and `admin`."""

    options: tuple[str, ...] = field(default=("--secure",), init=False)

    @property
    def files(self) -> SecureFiles:
        return SecureFiles(self.directory)

    @property
    def security(self) -> Security:
        return Security(LocalCluster(self.directory))

    def rotate_certificates(self) -> None:
        """Give all nodes other certificates; returns when they show them."""
        self.security.rotate_certificates()

    def start(self) -> None:
        TanistCluster.start(self)
        try:
            self.tanist(
                "acls",
                "add",
                "--allow-principal",
                f"User:{APP}",
                "--producer",
                "--consumer",
                "--topic",
                "*",
                "--group",
                "*",
            )
        except BaseException:
            self.stop()
            raise

    def client_settings(self, *, as_admin: bool = False) -> dict[str, Any]:
        return self.settings_of(ADMIN if as_admin else APP)

    def settings_of(self, user: str) -> dict[str, Any]:
        """Of librdkafka's clients."""
        return dict(self.files.librdkafka(user, self.bootstrap))

    @property
    def tls(self) -> ssl.SSLContext:
        """What believes the cluster's certificates."""
        return ssl.create_default_context(cafile=str(self.files.authority_path))

    def log_in(self, client: RawClient) -> None:
        client.over_tls(self.tls)
        client.log_in(ADMIN, self.files.password(ADMIN))
