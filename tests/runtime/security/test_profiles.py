"""The exchange of certificates while a network runs: what is taken, what is refused, and for whom it holds."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tanist.ports import TlsProblem
from tanist.runtime.security.profile import TlsProfile
from tests.certificates import CertificateAuthority, Issued, pem
from tests.runtime.network_rig import Handler, frame
from tests.runtime.security.damage import DAMAGES, damaged_store
from tests.runtime.tls_rig import TlsClient, TlsServer, client_context

Make = Callable[..., TlsServer]


def echo(handler: Handler, data: bytes) -> None:
    handler.connection.send([frame(data)])


@pytest.fixture
def server(runner: Any, tmp_path: Path) -> Iterator[TlsServer]:
    server = TlsServer(runner, tmp_path, echo)
    yield server
    server.close()
    assert runner.failures == []


def serial_number(client: TlsClient) -> str:
    found: Any = client.tls.getpeercert()
    return str(found["serialNumber"])


def number_of(issued: Issued) -> str:
    return f"{issued.chain[0].serial_number:X}".rjust(40, "0")


def test_the_new_one_holds_for_new_connections_only(runner: Any, server: TlsServer, tmp_path: Path) -> None:
    first = server.client()
    runner.until(first.pump)
    again = server.authority.issue("node")
    properties = again.pem_files(tmp_path)
    identity = server.network.set_tls_profile("L", properties, between_nodes=True)
    assert identity is not None
    second = server.client()
    runner.until(second.pump)
    assert serial_number(first).rjust(40, "0") == number_of(server.node)
    assert serial_number(second).rjust(40, "0") == number_of(again)
    for client in (first, second):
        client.send(frame(b"both"))
        runner.until(lambda each=client: (each.read(), each.frames == frame(b"both"))[1])
        client.close()


def test_a_try_changes_nothing(runner: Any, server: TlsServer, tmp_path: Path) -> None:
    properties = server.authority.issue("node").pem_files(tmp_path, "other")
    server.network.set_tls_profile("L", properties, between_nodes=True, only_try=True)
    client = server.client()
    runner.until(client.pump)
    assert serial_number(client).rjust(40, "0") == number_of(server.node)
    client.close()


def test_what_would_lock_somebody_out_is_refused(runner: Any, server: TlsServer, tmp_path: Path) -> None:
    authority, network = server.authority, server.network

    def said(issued: Issued, *, between_nodes: bool = False, **more: str) -> str:
        properties = {**issued.pem_files(tmp_path, "new"), **{f"ssl.{k.replace('_', '.')}": v for k, v in more.items()}}
        try:
            network.set_tls_profile("L", properties, between_nodes=between_nodes, only_try=True)
        except TlsProblem as problem:
            return str(problem)
        return ""

    assert said(authority.issue("node")) == ""
    assert "DistinguishedName does not match" in said(authority.issue("another"))
    assert said(authority.issue("another"), allow_dn_changes="true") == ""
    assert "SubjectAltNames do not match" in said(authority.issue("node", hosts=("localhost",)))
    assert said(authority.issue("node", hosts=("localhost",)), allow_san_changes="true") == ""
    assert said(authority.issue("node", hosts=("localhost", "127.0.0.1", "::1", "one.more"))) == ""
    assert "has expired" in said(authority.issue("node", days=(-3, -1)))
    stranger = CertificateAuthority("another").issue("node")
    assert said(stranger) == ""  # clients may trust both: Kafka asks for more only between nodes
    assert "the present settings do not accept the new certificate" in said(stranger, between_nodes=True)
    with pytest.raises(TlsProblem, match="Cannot remove the SSL keystore"):
        network.set_tls_profile("L", {}, between_nodes=False)
    client = server.client()
    runner.until(client.pump)
    assert serial_number(client).rjust(40, "0") == number_of(server.node)
    client.close()


def test_another_authority_comes_in_two_steps(runner: Any, server: TlsServer, tmp_path: Path) -> None:
    """Between nodes: first both are trusted, then the certificate is exchanged, then the old one is forgotten."""
    network = server.network
    new = CertificateAuthority("new CA").issue("node")
    both = tmp_path / "both.pem"
    both.write_text(pem(server.authority.certificate, new.authority.certificate))
    network.set_tls_profile("L", {**server.properties, "ssl.truststore.location": str(both)}, between_nodes=True)
    properties = new.pem_files(tmp_path, "new")
    network.set_tls_profile("L", {**properties, "ssl.truststore.location": str(both)}, between_nodes=True)
    network.set_tls_profile("L", properties, between_nodes=True)
    client = TlsClient(server.socket(), client_context(new.authority))
    runner.until(client.pump)
    assert client.done
    client.close()


def test_settings_that_do_not_accept_themselves_are_not_used_between_nodes(server: TlsServer, tmp_path: Path) -> None:
    other = tmp_path / "other-ca.pem"
    other.write_text(pem(CertificateAuthority("another").certificate))
    properties = {**server.node.pem_files(tmp_path), "ssl.truststore.location": str(other)}
    server.network.set_tls_profile("CLIENTS", properties, between_nodes=False)
    with pytest.raises(TlsProblem, match="can't connect to a server SSLEngine created with those settings"):
        server.network.set_tls_profile("BETWEEN", properties, between_nodes=True)


def test_files_that_have_changed_are_read_again(runner: Any, server: TlsServer, tmp_path: Path) -> None:
    store = Path(server.properties["ssl.keystore.location"])
    server.network.set_tls_profile("L", {**server.properties, "tanist.ssl.watch.interval.ms": "5"}, between_nodes=False)
    reports = server.reports.reloaded_
    new = server.authority.issue("node")
    half = new.key_pem() + new.chain_pem
    written = store.with_suffix(".half")
    written.write_text(half[: len(half) // 2])
    os.replace(written, store)
    runner.until(lambda: len(reports) == 1)
    assert reports[0][:2] == ("L", None)
    assert str(store) in (reports[0][2] or "")
    client = server.client()
    runner.until(client.pump)
    assert serial_number(client).rjust(40, "0") == number_of(server.node)  # the present one stays
    client.close()
    written.write_text(half)
    os.replace(written, store)
    runner.until(lambda: len(reports) == 2)
    assert reports[1][1] is not None
    client = server.client()
    runner.until(client.pump)
    assert serial_number(client).rjust(40, "0") == number_of(new)
    client.close()


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_file_that_is_damaged_meanwhile_is_named_and_not_used(
    runner: Any, server: TlsServer, tmp_path: Path, damage: str
) -> None:
    """An exception on the loop would end the node."""
    properties = {**server.properties, "tanist.ssl.watch.interval.ms": "1"}
    server.network.set_tls_profile("L", properties, between_nodes=True)
    written = tmp_path / "damaged.pem"
    written.write_text(damaged_store(server.node, damage))
    written.replace(properties["ssl.keystore.location"])
    runner.until(lambda: bool(server.reports.reloaded_ or runner.failures))
    assert runner.failures == []
    ((_, identity, problem),) = server.reports.reloaded_
    assert identity is None
    assert problem is not None
    assert "cannot be parsed" in problem
    client = server.client()
    runner.until(client.pump)
    assert serial_number(client).rjust(40, "0") == number_of(server.node)
    client.close()


def test_a_node_without_tls_does_not_load_it() -> None:
    code = (
        "import sys, tanist.runtime.process.serve, tanist.broker.node\n"
        "print([name for name in ('cryptography', 'tanist.runtime.ports.tls') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_node_that_asks_for_no_certificate_shows_its_own_alone(tmp_path: Path) -> None:
    """As its key store has it: a client that does not know the authority says so, and not that it is self-signed."""
    server = TlsProfile(CertificateAuthority().issue("node").pem_files(tmp_path))
    here, there = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        ssl.create_default_context().wrap_bio(here, there, server_hostname="localhost"),
        server.wrap(there, here, None),
    ]

    def shake_hands() -> None:
        for _ in range(4):
            for side in sides:
                with suppress(ssl.SSLWantReadError):
                    side.do_handshake()

    with pytest.raises(ssl.SSLCertVerificationError) as failed:
        shake_hands()
    assert failed.value.verify_message == "unable to get local issuer certificate"
