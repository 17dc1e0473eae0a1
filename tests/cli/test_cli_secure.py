"""`tanist up --secure`, followed as docs/security.md tells it: refused, then allowed; users; certificates."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run

Tanist = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("secure") / "data"
    command = [*TANIST, "up", "--secure", "--detach", "--port", str(free_port()), *FEW_PARTITIONS]
    done = subprocess.run([*command, "--data", str(folder)], capture_output=True, text=True, check=False, timeout=120)
    assert "ready in " in done.stdout, done.stderr
    assert f"{folder}/secure/app.properties" in done.stdout
    yield folder
    secrets = [path.read_text() for path in (folder / "secure").glob("*.password")]
    for log in folder.glob("node-*/node.log"):
        text = log.read_text()
        assert not [each for each in secrets if each in text]
    run("down", "--wipe", "--yes", folder=folder)
    assert not folder.exists()


@pytest.fixture
def tanist(folder: Path) -> Tanist:
    return lambda *arguments, **options: run(*arguments, folder=folder, **options)


def as_user(folder: Path, user: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [*TANIST, *arguments, "--client-config", str(folder / "secure" / f"{user}.properties")]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)


def test_commands_with_the_folder_ask_as_the_administrator(tanist: Tanist, folder: Path) -> None:
    status = tanist("status", "--json")
    assert {broker["state"] for broker in status["brokers"]} == {"running"}
    assert status["controller"] in (1, 2, 3)
    assert {each["user"] for each in tanist("users", "list", "--json")} >= {"admin", "app", "tanist-node"}
    assert folder.joinpath("secure").stat().st_mode & 0o777 == 0o700
    assert folder.joinpath("node-1", "server.properties").stat().st_mode & 0o777 == 0o600


def test_a_user_is_refused_and_then_allowed(tanist: Tanist, folder: Path) -> None:
    tanist("topics", "create", "orders", "--partitions", "1")
    refused = as_user(folder, "app", "produce", "orders", stdin="1\n")
    assert refused.returncode == 1
    assert "TOPIC_AUTHORIZATION_FAILED" in refused.stderr
    entry = ("--allow-principal", "User:app", "--producer", "--topic", "orders")
    assert len(tanist("acls", "add", *entry, "--json")["added"]) == 3
    assert wait_until(lambda: as_user(folder, "app", "produce", "orders", stdin="1\n").returncode == 0, 30)
    assert len(tanist("acls", "list", "--topic", "orders", "--json")) == 3
    assert len(tanist("acls", "remove", *entry, "--json")["removed"]) == 3
    assert wait_until(lambda: as_user(folder, "app", "produce", "orders", stdin="1\n").returncode == 1, 30)


def test_a_user_has_its_own_topics_and_groups_from_the_beginning(tanist: Tanist, folder: Path) -> None:
    assert as_user(folder, "app", "topics", "create", "app-orders", "--partitions", "1").returncode == 0
    assert as_user(folder, "app", "produce", "app-orders", stdin="a\nb\n").returncode == 0
    read = as_user(
        folder, "app", "consume", "app-orders", "--from-beginning", "--group", "app-g", "--max-messages", "2"
    )
    assert read.stdout.split() == ["a", "b"]
    other = as_user(folder, "app", "consume", "app-orders", "--group", "billing", "--max-messages", "1")
    assert "GROUP_AUTHORIZATION_FAILED" in other.stderr


def test_a_new_user_gets_in_by_its_password_only(tanist: Tanist, folder: Path) -> None:
    environment = os.environ | {"TANIST_PASSWORD": "bobs-secret"}
    added = subprocess.run(
        [*TANIST, "users", "add", "bob", "--data", str(folder)],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert added.returncode == 0, added.stderr
    text = folder.joinpath("secure", "app.properties").read_text()
    own = folder.parent / "bob.properties"

    def answer(password: str) -> subprocess.CompletedProcess[str]:
        jaas = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="bob" password="{password}";'
        lines = [line for line in text.splitlines() if not line.startswith("sasl.jaas.config")]
        own.write_text("\n".join([*lines, f"sasl.jaas.config={jaas}"]))
        command = [*TANIST, "topics", "list", "--client-config", str(own)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert wait_until(lambda: answer("bobs-secret").returncode == 0, 30)
    wrong = answer("another")
    assert wrong.returncode != 0
    assert "invalid credentials" in wrong.stderr
    assert "another" not in wrong.stderr
    tanist("users", "remove", "bob")
    assert wait_until(lambda: answer("bobs-secret").returncode != 0, 30)


def test_a_token_lets_a_client_in_until_it_ends(tanist: Tanist, folder: Path) -> None:
    done = as_user(
        folder, "app", "tokens", "create", "--renewer-principal", "User:admin", "--max-life-time-period", "86400000"
    )
    assert done.returncode == 0, done.stderr
    hmac = done.stdout.split()[-1]
    (token,) = tanist("tokens", "describe", "--owner-principal", "User:app", "--json")
    assert (token["owner"], token["requester"], token["renewers"]) == ("User:app", "User:app", ["User:admin"])
    assert token["expires_ms"] == token["ends_ms"] == token["issued_ms"] + 86_400_000
    token_id = token["token_id"]
    assert hmac not in json.dumps(token) + tanist("tokens", "describe")

    text = folder.joinpath("secure", "app.properties").read_text()
    own = folder.parent / "by-token.properties"
    jaas = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    lines = [line for line in text.splitlines() if not line.startswith("sasl.jaas.config")]
    lines.append(f'sasl.jaas.config={jaas} username="{token_id}" password="{hmac}" tokenauth="true";')
    own.write_text("\n".join(lines))

    def by_token(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*TANIST, *arguments, "--client-config", str(own)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert wait_until(lambda: by_token("topics", "list").returncode == 0, 30)
    another = by_token("tokens", "create")
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in another.stderr
    assert "not by a token" in another.stderr
    assert (
        tanist("tokens", "renew", token_id, "--renew-time-period", "1000000", "--json")["expires_ms"] < token["ends_ms"]
    )
    assert "no token nobody's" in tanist("tokens", "renew", "nobody's", code=1)
    assert "which token?" in tanist("tokens", "renew", code=2)
    environment = os.environ | {"TANIST_TOKEN_HMAC": hmac}
    ended = subprocess.run(
        [*TANIST, "tokens", "expire", "--data", str(folder)],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.stdout == "the token has ended\n", ended.stderr
    assert wait_until(lambda: by_token("topics", "list").returncode == 1, 30)
    again = tanist("tokens", "expire", "--hmac", hmac, code=1)
    assert "DELEGATION_TOKEN_NOT_FOUND" in again
    assert hmac not in again
    for log in folder.glob("node-*/node.log"):
        assert hmac not in log.read_text()


def test_a_roll_sees_each_node_of_a_secure_cluster(tanist: Tanist, folder: Path) -> None:
    """Controllers take certificates only, here."""
    plan = tanist("migrate", "plan", "--back", "--json")
    assert {node["software"] for node in plan["nodes"]} == {"tanist"}
    refused = as_user(folder, "admin", "migrate", "plan", "--back", "--json")
    assert refused.returncode == 1
    assert "--controller-config says who you are to controllers" in refused.stderr
    secure = folder / "secure"
    config = folder.parent / "controllers.properties"
    config.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={secure}/ca.pem\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={secure}/admin.pem\n"
    )
    asked = as_user(folder, "admin", "migrate", "plan", "--back", "--json", "--controller-config", str(config))
    assert json.loads(asked.stdout) == plan


def test_a_renewed_certificate_is_shown_without_a_restart(tanist: Tanist, folder: Path) -> None:
    node = load_existing(folder).node(1)

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", node.broker_port), ca_certs=str(folder / "secure" / "ca.pem"))

    before, pid = shown(), node.process
    assert tanist("certs", "renew", "1", "--days", "14", "--json")["renewed"] == [str(folder / "secure" / "node-1.pem")]
    assert wait_until(lambda: shown() != before, 30)
    assert load_existing(folder).node(1).process == pid
    days = {Path(each["file"]).stem: each["days_left"] for each in tanist("certs", "list", "--json")}
    assert days["node-1"] == 13
    assert "the certificate node-1.pem expires in 13 days: `tanist certs renew 1`" in tanist("status")
    assert len(tanist("status", "--json")["certificates"]) == 5
    assert days["node-2"] == 364


def test_a_client_without_tls_gets_nothing(folder: Path) -> None:
    port = load_existing(folder).node(1).broker_port
    command = [*TANIST, "topics", "list", "--bootstrap", f"127.0.0.1:{port}", "--json"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode != 0
    assert "closed the connection" in json.dumps(refused.stdout + refused.stderr)


def test_a_secure_cluster_starts_again_and_survives_a_crash(tanist: Tanist, folder: Path) -> None:
    tanist("crash", "2")
    tanist("start", "2")
    assert {broker["state"] for broker in tanist("status", "--json")["brokers"]} == {"running"}
