"""The commands' client on a node with TLS: it gets in with a certificate, and says why it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
