"""A replica's folder is removed behind a clean stop, on real nodes: what the operator reads, and what is left."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.runtime.cluster.cluster_file import load
from tests.cli.cli_rig import FEW_PARTITIONS, run


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    run("up", "--detach", "--brokers", "3", "--port", "0", *FEW_PARTITIONS, folder=folder)
    yield folder
    found = load(folder)
    for node in [] if found is None else found.running:
        assert node.process is not None
        node.process.kill()


def test_the_last_one_in_sync_has_lost_its_log(folder: Path) -> None:
    run("topics", "create", "t", "--replica-assignment", "3:2", "--config", "min.insync.replicas=1", folder=folder)
    run("produce", "t", folder=folder, stdin="".join(f"old {n}\n" for n in range(100)))
    run("stop", "2", folder=folder)
    run("produce", "t", folder=folder, stdin="".join(f"new {n}\n" for n in range(50)))
    run("stop", "3", folder=folder)
    run("start", "2", folder=folder)
    shutil.rmtree(folder / "node-3" / "data" / "t-0")
    run("start", "3", folder=folder)
    run("wait", "--topic", "t", "--leader", "2", folder=folder)

    log = (folder / "node-3" / "node.log").read_text()
    assert "ERROR the last stop was clean, and a part of 1 log (t-0: it had reached offset 150, and is gone)" in log
    assert "ERROR t-0: a part of its log is gone (it had reached offset 150, and is gone)" in log
    said = run("consume", "t", "--from-beginning", "--max-messages", "100", folder=folder)
    assert said.count("old ") == 100
    (described,) = run("topics", "describe", "t", "--json", folder=folder)
    assert described["partitions"][0]["last_unclean_epoch"] > 0
