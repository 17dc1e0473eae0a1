"""`crash`, `stop` and `start` take several ids, as `pause` and `resume` do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_rig import FEW_PARTITIONS, free_port, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("several") / "data"
    run("up", "--detach", "--port", str(free_port()), *FEW_PARTITIONS, folder=folder)
    yield folder
    run("down", folder=folder)


def states(folder: Path) -> list[str]:
    return [broker["state"] for broker in run("status", "--json", folder=folder)["brokers"]]


def test_two_at_once(folder: Path) -> None:
    assert run("crash", "1", "2", folder=folder) == "node 1: crashed\nnode 2: crashed\n"
    assert states(folder)[:2] == ["crashed", "crashed"]
    assert run("start", "1", "2", folder=folder).endswith("node 1: started\nnode 2: started\n")
    assert run("stop", "1", "2", "--json", folder=folder) == {"ids": [1, 2], "state": "stopped"}
    assert run("start", "1", "2", "1", "--json", folder=folder) == {"ids": [1, 2], "state": "started"}


def test_one_that_can_not_be_done_leaves_the_others_alone(folder: Path) -> None:
    for command in ("crash", "stop"):
        run(command, "1", "7", folder=folder, code=1)
    assert "crashed" not in states(folder)
    assert "stopped" not in states(folder)


def test_the_power_of_two_fails(folder: Path) -> None:
    cut = run("crash", "1", "2", "--lose", "page-cache", "--json", folder=folder)
    assert cut["ids"] == [1, 2]
    assert {path.split("/node-")[1][0] for path in (each["path"] for each in cut["lost"])} == {"1", "2"}
    run("start", "1", "2", folder=folder)
