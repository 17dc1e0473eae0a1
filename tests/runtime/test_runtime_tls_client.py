"""The commands' client on a node with TLS: it gets in with a certificate, and says why it does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.client.security import client_security
from tanist.log.properties import parse_properties
from tanist.runtime.client.client import AuthenticationFailed, Client, parse_bootstrap
from tests.certificates import CertificateAuthority, pem
from tests.clusters_with_tls import TlsCluster
from tests.interop.tanist_cluster import CommandFailed, tanist


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsCluster]:
    cluster = TlsCluster(tmp_path_factory.mktemp("tls"), nodes=1, client_auth="required")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def properties(folder: Path, cluster: TlsCluster, **more: str) -> str:
    lines = {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": str(cluster.trusted),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(cluster.client("operator")),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in lines.items() if value))
    return str(file)


def test_a_command_gets_in_with_its_certificate(node: TlsCluster, tmp_path: Path) -> None:
    config = properties(tmp_path, node)
    tanist("topics", "create", "t", "--client-config", config)
    assert "t" in tanist("topics", "list", "--client-config", config)


def test_a_command_says_why_it_does_not_get_in(node: TlsCluster, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text(pem(CertificateAuthority("another").certificate))
    for more, said in (
        ({"ssl_ca_location": str(other)}, "the broker's certificate is not accepted"),
        ({"ssl_keystore_location": "", "ssl_keystore_type": ""}, "the broker does not accept this client"),
        ({"ssl_keystore_location": "/no/such/file"}, "ssl.keystore.location=/no/such/file cannot be read"),
    ):
        with pytest.raises(CommandFailed, match=said):
            tanist("topics", "list", "--client-config", properties(tmp_path, node, **more))


def test_a_store_that_was_written_again_is_read_again(node: TlsCluster, tmp_path: Path) -> None:
    """Jobs connect for months; certificates are exchanged meanwhile."""
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(Path(node.trusted).read_bytes())
    text = properties(tmp_path, node, ssl_ca_location=str(trusted))
    security = client_security(parse_properties(Path(text).read_text()), os.urandom)

    def ask() -> None:
        with Client(parse_bootstrap(node.bootstrap), security=security) as client:
            client.metadata()

    ask()
    trusted.write_text(pem(CertificateAuthority("another").certificate))
    os.utime(trusted, (1, 1))
    with pytest.raises(AuthenticationFailed, match="the broker's certificate is not accepted"):
        ask()
