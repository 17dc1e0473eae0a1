"""Certificates of a secure cluster: a handshake takes them, under the hosts that they name and no others."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from tanist.runtime.cluster import layout
from tanist.runtime.cluster.certificates import (
    Certified,
    as_trust_store,
    authority,
    expires,
    hosts_of,
    issue,
    now_utc,
)
from tanist.runtime.cluster.secure_files import ADMIN, APP, SecureFiles
from tanist.runtime.cluster.starting import Starter
from tanist.runtime.format import random_id
from tanist.security.sasl import scram_argument
from tanist.security.sasl.scram import Random
from tanist.security.sasl.scram_argument import parse_credential
from tanist.wire.metadata import UserScramCredentialRecord

NOW = now_utc()
YEAR = timedelta(days=365)


@pytest.fixture(scope="module")
def signer() -> Certified:
    return authority("tanist test", NOW)


def handshake(signer: Certified, server: Certified, host: str, folder: Path, client: Certified | None = None) -> None:
    """Both ends in memory. `ssl.SSLError` if either refuses."""
    pem = folder / "server.pem"
    pem.write_bytes(server.pem)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pem)
    asking = ssl.create_default_context(cadata=signer.certificate.decode())
    if client is not None:
        serving.verify_mode = ssl.CERT_REQUIRED
        serving.load_verify_locations(cadata=signer.certificate.decode())
        (folder / "client.pem").write_bytes(client.pem)
        asking.load_cert_chain(folder / "client.pem")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        asking.wrap_bio(to_client, to_server, server_hostname=host),
        serving.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(6):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].version() is not None
    if client is not None:
        assert ends[1].getpeercert()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "broker-1.example"])
def test_a_client_takes_the_certificate_under_its_hosts(signer: Certified, tmp_path: Path, host: str) -> None:
    server = issue(signer, "node-1", ["localhost", "127.0.0.1", "broker-1.example"], NOW, YEAR)
    handshake(signer, server, host, tmp_path)
    assert hosts_of(server.certificate) == ["localhost", "127.0.0.1", "broker-1.example"]


def test_a_client_does_not_take_it_under_another(signer: Certified, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        handshake(signer, issue(signer, "node-1", ["localhost"], NOW, YEAR), "other.example", tmp_path)


def test_nodes_take_each_others(signer: Certified, tmp_path: Path) -> None:
    handshake(
        signer, issue(signer, "a", ["localhost"], NOW, YEAR), "localhost", tmp_path, issue(signer, "b", [], NOW, YEAR)
    )


def test_one_that_has_expired_is_refused(signer: Certified, tmp_path: Path) -> None:
    server = issue(signer, "node-1", ["localhost"], NOW, timedelta(days=-1))
    assert expires(server.certificate) < NOW - timedelta(hours=23)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        handshake(signer, server, "localhost", tmp_path)


def test_one_of_another_authority_is_refused(signer: Certified, tmp_path: Path) -> None:
    server = issue(authority("another", NOW), "node-1", ["localhost"], NOW, YEAR)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(signer, server, "localhost", tmp_path)


def test_the_trust_store_of_java_holds_the_authority(signer: Certified) -> None:
    trusted = pkcs12.load_pkcs12(as_trust_store(signer, "secret"), b"secret").additional_certs
    assert [each.certificate.subject.rfc4514_string() for each in trusted] == ["CN=tanist test"]


def test_keys_stand_in_no_repr(signer: Certified) -> None:
    assert "PRIVATE" not in repr(signer)


# -- the folder


def test_the_files_are_for_the_owner_only_and_made_once(tmp_path: Path) -> None:
    files = SecureFiles(tmp_path)
    files.make("cluster", (1, 2), ["broker.example"], "127.0.0.1:9092")
    before = {path: path.read_bytes() for path in files.folder.iterdir()}
    files.make("cluster", (1, 2), ["broker.example"], "127.0.0.1:9092")
    assert {path: path.read_bytes() for path in files.folder.iterdir()} == before
    assert files.folder.stat().st_mode & 0o777 == 0o700
    readable = {path.name for path in before if path.stat().st_mode & 0o077}
    assert readable == {"ca.pem"}
    assert hosts_of(files.node_path(1).read_bytes())[:2] == ["broker.example", "localhost"]


def test_each_user_has_a_password_of_its_own_and_a_configuration_for_each_client(tmp_path: Path) -> None:
    files = SecureFiles(tmp_path)
    files.make("cluster", (1,), [], "127.0.0.1:9092")
    assert files.password(ADMIN) != files.password(APP)
    properties = files.client_config(APP).read_text()
    assert f'username="app" password="{files.password(APP)}";' in properties
    assert f"sasl.password={files.password(APP)}\n" in (files.folder / "app.librdkafka.conf").read_text()
    given: dict[str, dict[str, str]] = {}
    exec((files.folder / "app.py").read_text(), given)
    assert given["settings"]["sasl_plain_password"] == files.password(APP)


def test_renewed_certificates_have_the_hosts_of_the_old_ones(tmp_path: Path) -> None:
    files = SecureFiles(tmp_path)
    files.make("cluster", (1,), ["broker.example"], "127.0.0.1:9092")
    old = files.node_path(1).read_bytes()
    assert files.renew([1], timedelta(days=7)) == [files.node_path(1)]
    new = files.node_path(1).read_bytes()
    assert new != old
    assert hosts_of(new) == hosts_of(old)
    left = {state.path.name: state.days_left(now_utc()) for state in files.certificates()}
    assert left == {"admin.pem": 364, "ca.pem": 3649, "node-1.pem": 6}


def test_credentials_are_derived_for_new_folders_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    derived: list[str] = []

    def counting(text: str, random: Random) -> UserScramCredentialRecord:
        derived.append(text)
        return parse_credential(text, random)

    monkeypatch.setattr(scram_argument, "parse_credential", counting)
    cluster, _ = layout.lay_out(
        cluster_id=random_id(), brokers=3, controllers=0, host="127.0.0.1", port=0, config={}, secure=True
    )
    starter = Starter(tmp_path, lambda _: None, ())
    starter.write_properties(cluster)
    assert len(derived) == 9  # three users for each of three nodes
    starter.write_properties(cluster)
    assert len(derived) == 9
