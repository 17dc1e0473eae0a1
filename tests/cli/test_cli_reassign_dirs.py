"""`tanist reassign` between the log directories of brokers (KIP-113), on a cluster whose nodes have two each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_rig import FEW_PARTITIONS, free_port, run

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    small = ("--config", "replica.fetch.max.bytes=20000")
    run(
        "up", "--detach", "--brokers", "2", "--log-dirs", "2", "--port", str(free_port()), *small, *FEW_PARTITIONS,
        folder=folder,
    )  # fmt: skip
    yield folder
    run("down", folder=folder)


def test_a_replica_goes_to_another_directory_and_back(folder: Path, tmp_path: Path) -> None:
    def tanist(*arguments: str, **options: Any) -> Any:
        return run(*arguments, folder=folder, **options)

    tanist("topics", "create", "t", "--replica-assignment", "1:2")
    for batch in range(5):
        tanist("produce", "t", stdin="".join(f"{number:01000}\n" for number in range(80 * batch, 80 * batch + 80)))
    both = [str(folder / "node-1" / name) for name in ("data", "data-2")]
    source, target = sorted(both, key=lambda path: not (Path(path) / "t-0").exists())
    file, back = tmp_path / "move.json", tmp_path / "back.json"

    def propose(*log_dirs: str) -> None:
        part = {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": list(log_dirs)}
        file.write_text(json.dumps({"version": 1, "partitions": [part]}))

    propose("/nowhere", "any")
    refused = tanist("reassign", "apply", str(file), code=1)
    assert "t-0: LOG_DIR_NOT_FOUND: broker 1, log directory /nowhere" in refused

    tanist("configs", "alter", "--broker", "1", "--config", f"{RATE}=1")
    propose(target, "any")
    late = tanist("reassign", "apply", str(file), "--save-current", str(back), "--wait", "0.5", code=3)
    assert "1 of 1 partition has not moved yet" in late
    assert json.loads(back.read_text())["partitions"][0]["log_dirs"] == [source, "any"]
    [row] = tanist("reassign", "list", "--json")
    assert row["state"] == "moving"
    [moving] = row["log_dirs"]
    assert (moving["broker"], moving["path"], moving["target"]) == (1, source, target)
    assert 0 < moving["copied"] < 1
    assert f"1:{source} to {target} (" in tanist("reassign", "list", str(file))
    assert tanist("reassign", "cancel", "--all") == "cancelled 1 move between log directories\n"
    assert tanist("reassign", "list") == "nothing is under way\n"
    assert [each["state"] for each in tanist("reassign", "list", str(file), "--json")] == ["other"]

    tanist("configs", "alter", "--broker", "1", "--unset", RATE)
    assert tanist("reassign", "apply", str(file), "--wait", "60") == "1 partition moved\n"
    assert (Path(target) / "t-0").is_dir()
    assert [each["state"] for each in tanist("reassign", "list", str(file), "--json")] == ["complete"]
    assert tanist("reassign", "apply", str(back), "--wait", "60") == "1 partition moved\n"
    assert (Path(source) / "t-0").is_dir()
    assert tanist("consume", "t", "--from-beginning", "--timeout", "3").endswith("\n400 records read\n")
