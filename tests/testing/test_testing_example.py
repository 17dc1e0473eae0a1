"""`examples/orders`: its test fails with the lost orders by name, and passes after the mend of one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tanist.testing import Cluster
from tests.clients import install

pytestmark = pytest.mark.clients

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "orders"
BUG = 'TOPIC_SETTINGS = {"min.insync.replicas": "2"}'
MEND = 'TOPIC_SETTINGS = {"min.insync.replicas": "2", "flush.messages": "1"}'


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "orders", ignore=shutil.ignore_patterns("__pycache__")))


def run(example: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rfs", *arguments],
        cwd=example,
        env=os.environ | {"PYTHONPATH": str(install.install())},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_bug_is_found_and_the_lost_orders_are_named(example: Path) -> None:
    said = run(example)
    assert "1 failed, 1 passed" in said
    assert "FAILED test_orders.py::test_confirmed_orders_are_kept[power-failure]" in said
    assert "10 of 10 confirmed orders are lost: order 1, order 2, order 3" in said
    assert re.search(r"test +crash\(1, 2, 3, lose='page-cache'\)", said)
    assert "elected uncleanly, recovering" in said
    folder = Path(re.findall(r"data of the failed tests: (\S+)", said)[0])
    assert (folder / "cluster.json").exists()
    shutil.rmtree(folder)


def test_one_line_mends_it(example: Path) -> None:
    source = (example / "orders.py").read_text()
    assert source.count(BUG) == 1
    (example / "orders.py").write_text(source.replace(BUG, MEND))
    assert "2 passed" in run(example)


def test_another_kafka_cannot_lose_power(example: Path, kafka_cluster: Cluster) -> None:
    said = run(example, f"--tanist-bootstrap={kafka_cluster.bootstrap}")
    assert "2 skipped" in said
    assert "crash: only clusters that tanist.testing has started can kill a node" in said
