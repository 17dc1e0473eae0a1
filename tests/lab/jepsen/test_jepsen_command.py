"""What the command line of `tanist jepsen` refuses, and how; the plans of its processes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.installed import add_extra
from tanist.lab.jepsen.plan import Plan
from tanist.lab.jepsen.run import choose_client
from tanist.lab.jepsen.target import RunFailed
from tanist.runtime.client.client import format_bootstrap

BOOTSTRAP = ("--bootstrap", "127.0.0.1:1")


def _jepsen(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["jepsen", *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--crash", "k {node}"), "--crash needs --bootstrap"),
        (BOOTSTRAP, "--bootstrap needs --start CMD and --crash CMD"),
        ((*BOOTSTRAP, "--start", "s {node}", "--crash", "k"), "--crash 'k' does not name the node"),
        (
            (*BOOTSTRAP, "--start", "s {node}", "--crash", "k {node}", "--pause", "p {node}"),
            "--pause and --resume go together",
        ),
        (
            (*BOOTSTRAP, "--start", "s {node}", "--crash", "k {node}", "--elr", "off"),
            "--elr does not go with --bootstrap",
        ),
        (
            (*BOOTSTRAP, "--start", "s {node}", "--crash", "k {node}", "--secure"),
            "--secure does not go with --bootstrap",
        ),
        (("--bootstrap", "nowhere"), "'nowhere' is not host:port"),
        (("--test", "everything"), "'everything' is not one of"),
        (("--workload", "groups"), "'groups' is not one of"),
        (("--minutes", "0"), "0.0 is not in the range"),
        (("--min-isr", "4"), "4 is not in the range"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_starts(arguments: tuple[str, ...], message: str) -> None:
    result = _jepsen(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_results_of_another_run_are_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text("")
    result = _jepsen("--out", str(tmp_path))
    assert result.exit_code == 2
    assert "is not empty" in result.output


def test_a_cluster_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tanist.lab.jepsen.outside._ASK_S", 0.1)
    out = ("--out", str(tmp_path / "out"))
    result = _jepsen(*BOOTSTRAP, "--start", "s {node}", "--crash", "k {node}", *out, "--client", "tanist")
    assert result.exit_code == 2
    assert "the cluster does not answer" in result.output


def test_a_plan_survives_its_command_line() -> None:
    plan = Plan("writer", "w1", "tanist", (("h", 1), ("::1", 2)), "jepsen", 4, 100.0, 7)
    assert Plan.decode(plan.encode(), {}) == plan
    secret = replace(plan, properties={"sasl.password": "one-secret"})
    assert "one-secret" not in secret.encode() + repr(secret)
    assert Plan.decode(secret.encode(), secret.properties) == secret
    assert format_bootstrap(plan.addresses) == "h:1,[::1]:2"


def test_the_client_is_confluents_if_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert [choose_client(wanted) for wanted in ("auto", "confluent", "tanist")] == ["confluent", "confluent", "tanist"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert [choose_client(wanted) for wanted in ("auto", "tanist")] == ["tanist", "tanist"]
    with pytest.raises(RunFailed, match=re.escape(add_extra("jepsen"))):
        choose_client("confluent")
