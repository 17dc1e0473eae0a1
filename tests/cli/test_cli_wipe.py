"""`tanist down --wipe`, `reset` and `up --ephemeral --port 0`: what is removed, and what is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.cluster.cluster_file import load, load_existing
from tanist.runtime.cluster.processes import ProcessMark, wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run

Up = Callable[..., dict[str, Any]]


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    """`tanist up --detach --json`; whatever is left of it ends with the test."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    folders: list[Path] = []

    def start(*arguments: str) -> dict[str, Any]:
        command = [*TANIST, "up", "--detach", "--json", "--brokers", "1", *FEW_PARTITIONS, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        folders.append(Path(answer["data"]))
        return answer

    yield start
    for folder in folders:
        found = load(folder)
        for node in [] if found is None else found.running:
            assert node.process is not None
            node.process.kill()


def test_a_wipe_removes_the_cluster_and_nothing_else(up: Up, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("keep me")
    elsewhere = tmp_path / "disk"
    up("--port", str(free_port()), "--data", str(folder), "--config", f"log.dirs={elsewhere}")
    run("topics", "create", "orders", folder=folder)
    assert (elsewhere / "orders-0").is_dir()

    said = run("down", "--wipe", folder=folder, stdin="n\n", code=1)
    assert "all topics and records of 1 node in" in said
    assert load_existing(folder).running

    assert f"removed the cluster in {folder}" in run("down", "--wipe", folder=folder, stdin="y\n")
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt"]
    assert not elsewhere.exists()


STRANGE = "label=linux,python=3.11 a#b%c!\\d,\"e'é\U0001f980\t" + "x" * 150


def test_a_folder_of_any_name_has_the_cluster_and_no_other_folder_has(up: Up, tmp_path: Path) -> None:
    """Jenkins names folders `label=linux,python=3.11`. Kafka splits log.dirs at each comma."""
    place = tmp_path / STRANGE
    place.mkdir()
    sibling = tmp_path / STRANGE.partition(",")[0]
    sibling.mkdir()
    (sibling / "notes.txt").write_text("keep me")
    before = sorted(path.name for path in Path.cwd().iterdir())
    folder = place / "cluster"
    up("--port", "0", "--data", str(folder), "--log-dirs", "2")
    run("topics", "create", "orders", folder=folder)
    run("produce", "orders", folder=folder, stdin="a\n")
    assert (folder / "node-1" / "data" / "orders-0").is_dir() or (folder / "node-1" / "data-2" / "orders-0").is_dir()
    run("down", folder=folder)
    run("up", "--detach", folder=folder)
    assert "a" in run("consume", "orders", "--from-beginning", "--max-messages", "1", folder=folder)
    assert run("salvage", "list", "--json", folder=folder) == []
    run("down", "--wipe", "--yes", folder=folder)
    assert list(place.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([place.name, sibling.name])
    assert [path.name for path in sibling.iterdir()] == ["notes.txt"]
    assert sorted(path.name for path in Path.cwd().iterdir()) == before


def test_a_wipe_leaves_what_another_cluster_has_formatted(up: Up, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "mine", tmp_path / "disk"
    up("--port", str(free_port()), "--data", str(folder), "--config", f"log.dirs={elsewhere}")
    run("down", folder=folder)
    meta = elsewhere / "meta.properties"
    meta.write_text(meta.read_text().replace(load_existing(folder).cluster_id, "AAAAAAAAQACAAAAAAAAAAQ"))
    run("down", "--wipe", "--yes", folder=folder)
    assert not folder.exists()
    assert meta.exists()


def test_a_reset_empties_a_cluster_that_runs_and_it_runs_again(up: Up, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    before = up("--port", str(free_port()), "--data", str(folder), "--feature", "eligible.leader.replicas.version=0")
    run("topics", "create", "orders", folder=folder)
    run("produce", "orders", folder=folder, stdin="a\n")
    old_id = load_existing(folder).cluster_id
    assert "all topics and records" in run("reset", folder=folder, stdin="\n", code=1)
    assert run("topics", "list", "--json", folder=folder)

    answer = run("reset", "--yes", "--json", folder=folder)
    assert answer["running"]
    assert answer["bootstrap"] == before["bootstrap"]
    assert answer["cluster_id"] == load_existing(folder).cluster_id != old_id
    assert run("topics", "list", "--json", folder=folder) == []
    features = {each["feature"]: each for each in run("features", "describe", "--json", folder=folder)["features"]}
    assert features["eligible.leader.replicas.version"]["level"] == 0

    run("down", folder=folder)
    assert "empty; `tanist up` starts it" in run("reset", "--yes", folder=folder)
    assert load_existing(folder).running == []


def test_a_reset_leaves_the_cluster_with_the_up_that_holds_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    command = [*TANIST, "up", "--brokers", "1", *FEW_PARTITIONS, "--port", str(free_port()), "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert "ready in" in holder.stdout.readline()
            run("reset", "--yes", folder=folder)
            (node,) = load_existing(folder).running
            holder.send_signal(signal.SIGKILL)
            mark = node.process
            assert mark is not None
            assert wait_until(lambda: not mark.alive, 120), "the watcher stops the new nodes as it would the old"
        finally:
            holder.kill()
            found = load(folder)
            for left in [] if found is None else found.running:
                assert left.process is not None
                left.process.kill()


def test_an_ephemeral_cluster_leaves_nothing_behind(up: Up) -> None:
    first, second = up("--ephemeral", "--port", "0"), up("--ephemeral", "--port", "0")
    folders = [Path(each["data"]) for each in (first, second)]
    assert first["bootstrap"] != second["bootstrap"]
    assert first["ephemeral"]
    run("topics", "create", "orders", folder=folders[0])
    marks = [_mark(folder) for folder in folders]
    for folder in folders:
        run("down", folder=folder)  # asks nothing: it was made to go
        assert not folder.exists()
    assert not any(mark.alive for mark in marks)


def test_an_ephemeral_cluster_goes_with_a_killed_up(tmp_path: Path) -> None:
    command = [*TANIST, "up", "--brokers", "1", *FEW_PARTITIONS, "--ephemeral", "--port", "0", "--json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "TANIST_DATA": str(tmp_path / "not-this")}
    with (tmp_path / "out").open("w+") as out:
        holder = subprocess.Popen(command, stdout=out, env=environment)

        def answer() -> Any:
            text = (tmp_path / "out").read_text()
            return json.loads(text) if text.endswith("}\n") else None

        assert wait_until(lambda: answer() is not None, 60)
        folder = Path(answer()["data"])
        mark = _mark(folder)
        holder.kill()
        holder.wait()
        assert wait_until(lambda: not folder.exists(), 120)
        assert not mark.alive


def test_ephemeral_has_a_folder_of_its_own(tmp_path: Path) -> None:
    assert "leave out --data" in run("up", "--ephemeral", folder=tmp_path / "x", code=2)


def _mark(folder: Path) -> ProcessMark:
    (node,) = load_existing(folder).running
    assert node.process is not None
    return node.process
