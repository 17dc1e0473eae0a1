"""`examples/ci`: the workflow for a user's repository has GitHub's form, and its `test` step keeps what failed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

FILE = Path(__file__).resolve().parents[2] / "examples" / "ci" / "kafka-tests.yml"
JOB_KEYS = {"name", "runs-on", "timeout-minutes", "strategy", "env", "services", "steps", "needs", "if", "permissions"}
STEP_KEYS = {"name", "id", "if", "uses", "with", "run", "env", "shell"}

SUITE = """\
def test_that_fails(kafka):
    topic = kafka.create_topic(kafka.topic("orders"))
    assert kafka.records(topic) == ["an order"]


def test_that_passes():
    pass
"""


def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def step(job: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in workflow()["jobs"][job]["steps"] if each.get("name") == name)
    return dict(found)


def test_the_workflow_has_the_form_that_github_reads() -> None:
    found = workflow()
    assert found.keys() == {"name", True, "permissions", "jobs"}  # YAML 1.1 reads `on` as true
    for job in found["jobs"].values():
        assert job.keys() <= JOB_KEYS
        for each in job["steps"]:
            assert each.keys() <= STEP_KEYS
            assert ("run" in each) != ("uses" in each)
            assert "uses" not in each or re.fullmatch(r"[\w-]+/[\w-]+@v\d+", each["uses"])
    for name in re.findall(r"matrix\.(\w+)", FILE.read_text()):
        assert name in found["jobs"]["tanist"]["strategy"]["matrix"]
    assert (
        step("tanist", "keep the data of failed tests")["with"]["path"]
        == Path(found["jobs"]["tanist"]["env"]["TMPDIR"].partition("}}/")[2]).as_posix()
    )


@pytest.mark.clients
def test_the_data_of_a_failed_test_is_where_the_workflow_takes_it_from(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    data = tmp_path / "tanist-data"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", step("tanist", "test")["run"]],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "TMPDIR": str(data)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "1 failed, 1 passed" in said, said
    assert list(data.glob("*/cluster.json")), said
