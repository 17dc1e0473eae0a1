"""As a new user has it: an environment with what pip makes of this checkout, and nothing else of it.

The commands of docs/testing.md and docs/pytest-only.md to the letter, and `examples/orders`, each timed
(`pytest -m clients -s` shows the times).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.testing import Cluster

pytestmark = pytest.mark.clients

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "testing.md"
ONLY = ROOT / "docs" / "pytest-only.md"
EXAMPLE = ROOT / "examples" / "orders"
REPORT_S_MAX = 15.0
"""From `pytest` to the report of the bug, on a machine that does nothing else."""
LOST = "AssertionError: 10 of 10 confirmed orders are lost: order 1, order 2, order 3"


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    said: str
    took_s: float


def shell(command: str, folder: Path) -> Done:
    """A command as someone types it who has Python and nothing else."""
    names = ("HOME", "LANG", "PATH", "PIP_", "SSL_", "REQUESTS_", "HTTP", "http", "NO_PROXY", "no_proxy", "TMPDIR")
    clean = {name: value for name, value in os.environ.items() if name.startswith(names)}
    path = [Path(sys.base_prefix) / "bin", "/usr/local/bin", "/usr/bin", "/bin"]
    began = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=clean | {"PATH": ":".join(map(str, path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )
    took_s = time.monotonic() - began
    print(f"{took_s:6.1f} s  {command.splitlines()[0][:90]}")
    return Done(done.returncode, done.stdout, took_s)


def commands() -> list[str]:
    """Those of the page, to the letter."""
    block = next(each for each in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL) if "END" in each)
    return [each.rstrip("\n") for each in re.split(r"^\$ ", block, flags=re.MULTILINE) if each]


def kept_folders(said: str) -> list[Path]:
    return [Path(found) for found in re.findall(r"data of the failed tests: (\S+)", said)]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the checkout is `tanist`."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "tanist").symlink_to(ROOT)
    return folder


@pytest.fixture(scope="module")
def five(beside: Path) -> tuple[Path, list[Done]]:
    """The folder of the new user, and the results of the five commands there."""
    folder = beside / "new-user"
    folder.mkdir()
    return folder, [shell(command, folder) for command in commands()]


def test_five_commands_to_a_test_that_fails_and_then_passes(five: tuple[Path, list[Done]]) -> None:
    _, results = five
    assert len(results) == 5
    *prepared, failed, passed = results
    for done in prepared:
        assert done.code == 0, done.said
    assert failed.code == 1, failed.said
    assert "1 failed" in failed.said
    assert re.search(r"test +crash\(1, 2, 3, lose='page-cache'\)", failed.said)
    assert passed.code == 0, passed.said
    assert "1 passed" in passed.said
    for folder in kept_folders(failed.said):
        shutil.rmtree(folder)


def test_nothing_else_of_ours_is_there(five: tuple[Path, list[Done]]) -> None:
    folder, _ = five
    found = shell(".venv/bin/python -c 'import sys, tanist; print(tanist.__file__, *sys.path)'", folder).said
    assert f"{folder}/.venv/lib" in found
    assert str(ROOT) not in found


@pytest.fixture
def example(five: tuple[Path, list[Done]], tmp_path: Path) -> Path:
    """A copy of the example, beside the new user's environment."""
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "orders", ignore=shutil.ignore_patterns("__pycache__")))
    (folder / "pytest").symlink_to(five[0] / ".venv" / "bin" / "pytest")
    return folder


def test_the_example_s_bug_is_found(example: Path) -> None:
    quiet = os.getloadavg()[0] < 0.5
    done = shell("./pytest -rf", example)
    assert "1 failed, 1 passed" in done.said
    assert "FAILED test_orders.py::test_confirmed_orders_are_kept[power-failure]" in done.said
    assert LOST in done.said
    assert re.search(r"test +crash\(1, 2, 3, lose='page-cache'\)", done.said)
    assert "elected uncleanly, recovering" in done.said
    (folder,) = kept_folders(done.said)
    assert (folder / "cluster.json").exists()
    shutil.rmtree(folder)
    if quiet:
        assert done.took_s < REPORT_S_MAX


def test_one_line_mends_the_example(example: Path) -> None:
    assert "2 passed" in shell("./pytest --mended", example).said
    source = (example / "orders.py").read_text()
    line = 'TOPIC_SETTINGS = {"min.insync.replicas": "2"}'
    assert source.count(line) == 1
    (example / "orders.py").write_text(source.replace(line, line.replace('"2"}', '"2", "flush.messages": "1"}')))
    assert "2 passed" in shell("./pytest", example).said


def test_another_kafka_says_which_faults_are_not_to_be_had(example: Path, kafka_cluster: Cluster) -> None:
    done = shell(f"./pytest -rs --tanist-bootstrap={kafka_cluster.bootstrap}", example)
    assert "2 skipped" in done.said
    assert "crash: only clusters that tanist.testing has started can kill a node" in done.said


@pytest.mark.parametrize(
    "block", re.findall(r"```console\n(.*?)```", ONLY.read_text(), re.DOTALL), ids=("path", "wheel")
)
def test_the_plugin_alone_is_installed_as_its_page_says(beside: Path, tmp_path: Path, block: str) -> None:
    folder = beside / tmp_path.name
    folder.mkdir()
    made = shell("python3 -m venv .venv", folder)
    assert made.code == 0, made.said
    for line in block.splitlines():
        done = shell(f"PATH=$PWD/.venv/bin:$PATH; {line.removeprefix('$ ')}", folder)
        assert done.code == 0, done.said
    (folder / "test_one.py").write_text("def test_one(kafka):\n    assert len(kafka.brokers) == 3\n")
    done = shell(".venv/bin/pytest -q test_one.py", folder)
    assert "1 passed" in done.said, done.said
