"""`tanist lab scenarios`: what it prints, and how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.installed import add_extra

SCENARIOS = """
scenarios:
- {id: one, kind: assignment, from: [1], to: [2], expect: {adding: [2]}}
- {id: two, kind: assignment, from: [1], to: [2], expect: {removing: [1]}}
"""
DEVIATING = """
- {id: three, kind: builder, state: {replicas: [1, 2, 3], isr: [], elr: [2, 3], leader: -1}, ctx: {min_isr: 1,
   elr: true, mv: 4.0-IV1, acceptable: [2]}, change: {}, expect: {record: {isr: [2], elr: [3], leader: 2}}}
"""
FAILING = """
- {id: four, kind: assignment, from: [1], to: [2], expect: {adding: []}}
"""
UNKNOWN = """
- {id: five, kind: dance}
"""


def _run(tmp_path: Path, text: str, *options: str) -> Result:
    path = tmp_path / "scenarios.yaml"
    path.write_text(text)
    return CliRunner().invoke(app, ["lab", "scenarios", str(path), *options])


def test_all_passed(tmp_path: Path) -> None:
    result = _run(tmp_path, SCENARIOS)
    assert (result.exit_code, result.output) == (0, "2 passed, 0 failed\n")


def test_deviations_are_no_failures(tmp_path: Path) -> None:
    result = _run(tmp_path, SCENARIOS + DEVIATING)
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "2 passed, 0 failed, 1 deviate"
    assert result.output.startswith("DEVIATES  three  rule 35: ")


def test_a_failure(tmp_path: Path) -> None:
    result = _run(tmp_path, SCENARIOS + FAILING)
    assert result.exit_code == 1
    assert result.output == "FAILED    four  adding: expected [], saw [2]\n2 passed, 1 failed\n"


def test_an_unknown_kind_is_a_failure_and_a_mistake(tmp_path: Path) -> None:
    result = _run(tmp_path, SCENARIOS + UNKNOWN)
    assert result.exit_code == 2
    assert result.output == "FAILED    five  there is no player for kind dance\n2 passed, 1 failed\n"


def test_json(tmp_path: Path) -> None:
    result = _run(tmp_path, SCENARIOS + FAILING, "--json")
    assert result.exit_code == 1
    reported = json.loads(result.output)
    assert (reported["passed"], reported["failed"], reported["deviates"]) == (2, 1, 0)
    assert reported["scenarios"][2] == {
        "id": "four",
        "kind": "assignment",
        "verdict": "failed",
        "differences": [{"what": "adding", "expected": "[]", "seen": "[2]"}],
    }


@pytest.mark.parametrize("text", ["scenarios: [", "scenarios: [1]", "nothing: here"])
def test_a_malformed_file(tmp_path: Path, text: str) -> None:
    result = _run(tmp_path, text)
    assert result.exit_code == 2
    assert "scenarios.yaml" in result.output
    assert "passed" not in result.output


def test_no_file(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["lab", "scenarios"]).exit_code == 2
    missing = CliRunner().invoke(app, ["lab", "scenarios", str(tmp_path / "nothing.yaml")])
    assert missing.exit_code == 2
    assert "does not exist" in missing.output


def test_without_pyyaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    result = _run(tmp_path, SCENARIOS)
    assert result.exit_code == 2
    assert add_extra("lab") in result.output
