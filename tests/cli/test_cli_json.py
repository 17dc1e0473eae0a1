"""Every command that has `--json` is run with it: what it prints is JSON, and so are its errors.

A command without a line in `CASES` fails here: write down how it is run, or, if its output is no result that a program
would read, put it into `WITHOUT_JSON` and say why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tests.cli.command_cases import ALL, CASES, has, invoke

WITHOUT_JSON = {
    "completion": "a script for a shell",
    "serve": "a node: its output is its log",
    "spark story": "a story, for people",
    "ui": "a server until Ctrl-C; tests/web starts it and reads the address",
}
OF_SECURE_CLUSTERS = {
    *("acls list", "acls add", "acls remove", "certs list", "certs renew"),
    *("tokens create", "tokens renew", "tokens expire", "tokens describe"),
}
"""`test_cli_secure` runs them: they need a cluster with an authorizer and certificates."""


def test_every_command_has_json_and_a_case_here() -> None:
    without = {name for name, command in ALL.items() if not has(command, "--json")}
    assert without <= WITHOUT_JSON.keys(), "give them --json, or say in WITHOUT_JSON why not"
    tried = CASES.keys() | WITHOUT_JSON.keys() | OF_SECURE_CLUSTERS
    untried = {name for name in ALL if name not in tried and not name.startswith("spark ")}
    assert not untried, "say in CASES how they are run"
    assert CASES.keys() <= ALL.keys()


def case(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.long) if name in ("jepsen", "incident") else name


@pytest.mark.parametrize("name", [case(name) for name in CASES if name in ALL and has(ALL[name], "--json")])
def test_what_it_prints_is_json(names: dict[str, str], name: str) -> None:
    case = CASES[name]
    for line in case.before:
        assert invoke(line, names).exit_code == 0, line
    try:
        done = invoke(f"{name} {case.arguments} --json", names, stdin=case.stdin, data=case.data)
    finally:
        for line in case.after:
            assert invoke(line, names).exit_code == 0, line
    assert done.exit_code == case.code, f"{done.output}\n{done.exception!r}"
    result: Any = [json.loads(line) for line in done.stdout.splitlines()] if case.lines else json.loads(done.stdout)
    shown = result[0] if isinstance(result, list) else result
    assert set(case.has) <= shown.keys()


@pytest.mark.parametrize("name", [name for name, command in ALL.items() if has(command, "--json")])
def test_its_mistakes_are_json(name: str) -> None:
    require_error(CliRunner().invoke(app, [*name.split(), "--no-such-option", "--json"]), 2, "usage")


@pytest.mark.parametrize(
    "name", [name for name in CASES if has(ALL[name], "--json") and has(ALL[name], "--data") and name != "up"]
)
def test_its_errors_are_json(names: dict[str, str], tmp_path: Path, name: str) -> None:
    """Run as above, on a folder where no cluster is."""
    done = invoke(f"{name} {CASES[name].arguments} --json", names, data=str(tmp_path / "nowhere"))
    require_error(done, 1, "failed" if name.startswith("salvage ") else "cluster")


@pytest.mark.parametrize("name", [name for name in ALL if name.startswith("spark ") and name not in WITHOUT_JSON])
def test_the_errors_of_jobs_are_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    from tanist.cli.spark import group as spark

    monkeypatch.setattr(spark, "find_spec", lambda _: None)
    needed = {
        "spark ingest": ["table", "--topic", "t"],
        "spark egress": [str(tmp_path)],
        "spark package": [str(tmp_path / "env.tar.gz")],
        "spark seeds": ["--output", str(tmp_path / "table")],
    }
    arguments = needed.get(name, [])
    # 1 is what a job ends with that has found something.
    require_error(CliRunner().invoke(app, [*name.split(), *arguments, "--json"]), 2, "failed")


def require_error(done: Result, code: int, kind: str) -> None:
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    assert done.stdout == ""
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (error["kind"], error["exit_code"]) == (kind, code)
    assert error["message"]
