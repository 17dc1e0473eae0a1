"""Every command that dials does so as `--client-config` says: each is run as somebody whose password is wrong.

A new command that takes `--bootstrap` is walked here by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.client.security import ClientSecurity
from tanist.runtime.client.client import Address
from tanist.security.jaas import PLAIN_MODULE
from tests.cli.command_cases import ALL, CASES, has
from tests.clients.secured import SaslNode, running

DIALS = sorted(name for name, command in ALL.items() if has(command, "--bootstrap"))
OTHERWISE = {
    "ui": "a server until Ctrl-C: below",
    "salvage export": "it reads a folder, and asks brokers with --to topic only",
}
SPARK = {
    "spark ingest": "{table} --topic things",
    "spark egress": "{table} --topic things",
    "spark merge-back": "",
}


OF_SECURE_CLUSTERS = {
    "acls list": "",
    "acls add": "--allow-principal User:a --producer --topic things",
    "acls remove": "--allow-principal User:a --producer --topic things",
    "tokens create": "",
    "tokens renew": "one",
    "tokens expire": "one",
    "tokens describe": "",
}
"""Commands without a case, because theirs would need a secure cluster."""
MORE = {"wait": "--timeout 0", "jepsen": "--start true{node} --crash true{node}"}


def test_each_takes_a_clients_properties() -> None:
    without = [name for name in DIALS if not has(ALL[name], "--client-config")]
    assert not without, "give them client_options, or client_config_option"
    untried = set(DIALS) - CASES.keys() - OTHERWISE.keys() - SPARK.keys() - OF_SECURE_CLUSTERS.keys()
    assert not untried, "say in CASES, or here, how they are run"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    with running("tanist", tmp_path_factory.mktemp("sasl")) as found:
        yield found


@pytest.fixture
def config(node: SaslNode, tmp_path: Path) -> Path:
    """Of a user who is not believed; with where the brokers are."""
    path = tmp_path / "client.properties"
    path.write_text(
        f"bootstrap.servers={node.bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN_MODULE} required username="alice" password="not-this-one";\n'
    )
    return path


@pytest.mark.parametrize("name", [name for name in DIALS if name not in OTHERWISE and not name.startswith("spark ")])
def test_it_dials_as_somebody(config: Path, tmp_path: Path, name: str) -> None:
    (move := tmp_path / "move.json").write_text(
        '{"version": 1, "partitions": [{"topic": "things", "partition": 0, "replicas": [1, 2, 3]}]}'
    )
    (ledger := tmp_path / "ledger.jsonl").write_text('{"topic": "things", "partition": 0, "offset": 0, "value": "a"}\n')
    names = {"topic": "things", "group": "g", "move": str(move), "ledger": str(ledger), "hangs_at": "0"}
    names |= {"data": str(tmp_path), "jepsen": str(tmp_path / "out"), "node": "{node}"}
    case = CASES.get(name)
    arguments = f"{OF_SECURE_CLUSTERS[name] if case is None else case.arguments} {MORE.get(name, '')}"
    words = f"{name} {arguments} --client-config {config}".format(**names).split()
    done = CliRunner().invoke(app, words, input="" if case is None else case.stdin)
    assert done.exit_code, done.output
    assert "refuses PLAIN: Authentication failed: Invalid username or password" in done.stderr
    assert "not-this-one" not in done.output


def test_the_live_view_dials_as_somebody(
    config: Path, node: SaslNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[list[Address], ClientSecurity]] = []
    monkeypatch.setattr(
        "tanist.web.bootstrap_source.BootstrapSource", lambda addresses, security: seen.append((addresses, security))
    )
    monkeypatch.setattr("tanist.web.serving.serve", lambda *_: None)
    done = CliRunner().invoke(app, ["ui", "--no-browser", "--client-config", str(config), "--data", str(tmp_path)])
    assert done.exit_code == 0, done.output
    ((addresses, security),) = seen
    host, port = node.bootstrap.split(":")
    assert addresses == [(host, int(port))]
    assert security.credentials is not None
