"""`examples/suites`: suites in JavaScript, Go and Java that break a cluster with `tanist`, run as they are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.clients import builds
from tests.interop import apache

pytestmark = pytest.mark.clients

ROOT = Path(__file__).resolve().parents[2]
SUITES = ROOT / "examples" / "suites"

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A command beside a copy of a suite, with `tanist` on the PATH."""

    def begin(suite: str, command: list[str], environment: Mapping[str, str] | None = None) -> str:
        folder = tmp_path / suite
        if not folder.exists():
            shutil.copytree(SUITES / suite, folder)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TANIST_")}
        path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
        done = subprocess.run(
            command,
            cwd=folder,
            env=clean | path | dict(environment or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return begin


def test_javascript(run: Run) -> None:
    if reason := builds.missing_node():
        pytest.skip(reason)
    environment = {"NODE_PATH": str(builds.node_modules()), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    said = run("javascript", ["node", "--test", "--test-reporter=tap"], environment)
    assert "# pass 2" in said
    assert "# fail 0" in said


def test_go(run: Run) -> None:
    if reason := builds.missing_go():
        pytest.skip(reason)
    said = run("go", ["go", "test", "-mod=readonly", "-v", "./..."], {"GOTOOLCHAIN": "local"})
    assert said.count("--- PASS: TestOrders/") == 2


def test_java(run: Run) -> None:
    if reason := apache.missing() or (None if shutil.which("mvn") else "needs Maven (mvn is not on PATH)"):
        pytest.skip(reason)
    run("java", ["mvn", "-q", "-B", "test-compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath"])
    launch = "java -cp target/test-classes:$(cat classpath) org.junit.platform.console.ConsoleLauncher"
    said = run("java", ["sh", "-c", f"{launch} execute --select-class OrdersTest"])
    assert re.search(r"2 tests successful", said)
    assert re.search(r"0 tests failed", said)


@pytest.mark.parametrize("language", ["javascript", "go", "java"])
def test_the_page_shows_what_is_in_the_suite(language: str) -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    shown = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    suite = " ".join(" ".join(path.read_text().split()) for path in (SUITES / language).glob("[oO]rders*"))
    assert shown
    for block in shown:
        assert " ".join(block.split()) in suite
