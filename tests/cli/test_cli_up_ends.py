"""How a cluster ends with the `tanist up` that runs it: a closed terminal, a killed process, and who lives on."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tanist.runtime.cluster.cluster_file import NodeEntry, load, load_existing
from tanist.runtime.cluster.parent_watch import LOG_NAME
from tanist.runtime.cluster.processes import ProcessMark, wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run

Up = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    yield folder
    cluster = load(folder)
    for node in cluster.running if cluster is not None else ():
        assert node.process is not None
        node.process.kill()


@pytest.fixture
def up(folder: Path) -> Iterator[Up]:
    """Start `tanist up` in a session of its own, and return when it attends its cluster."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str, before: tuple[str, ...] = (), stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
        command = [*before, *TANIST, "up", "--port", str(free_port()), "--data", str(folder), *FEW_PARTITIONS, *options]
        process = subprocess.Popen(
            command, stdout=stdout, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )  # fmt: skip
        started.append(process)
        if process.stdout is not None:
            for line in process.stdout:
                if "Ctrl-C stops it" in line:
                    break
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def processes(folder: Path) -> list[ProcessMark]:
    return [node.process for node in load_existing(folder).running if node.process is not None]


def log_of(folder: Path, node: NodeEntry) -> str:
    return (folder / f"node-{node.node_id}" / "node.log").read_text()


def test_a_closed_terminal_stops_the_cluster_in_an_orderly_way(
    up: Up, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # with it nothing is left to be written at the exit
    ours, theirs = pty.openpty()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup the tests, and so the command, would ignore it
    try:
        process = up("--brokers", "1", stdout=theirs)
    finally:
        signal.signal(signal.SIGHUP, before)
    os.close(theirs)
    said = b""
    while b"Ctrl-C stops it" not in said:
        said += os.read(ours, 1000)
    (node,) = processes(folder)
    os.close(ours)  # what is printed from now on fails
    process.send_signal(signal.SIGHUP)  # as the kernel does
    process.send_signal(signal.SIGHUP)  # as the shell does
    assert process.wait(60) == 0
    assert not node.alive
    entries = load_existing(folder)
    assert [entry.process for entry in entries.nodes] == [None]
    assert entries.owner is None
    assert "SIGTERM: shutting down" in log_of(folder, entries.nodes[0])
    assert "again: ending at once" not in log_of(folder, entries.nodes[0])


def test_a_killed_up_takes_its_nodes_along_also_paused_and_restarted_ones(up: Up, folder: Path) -> None:
    process = up("--controllers", "1")
    run("crash", "3", folder=folder)
    run("start", "3", folder=folder)
    run("pause", "2", folder=folder)
    nodes = processes(folder)
    assert len(nodes) == 4
    process.kill()
    assert wait_until(lambda: not any(node.alive for node in nodes), 60)
    assert wait_until(lambda: load_existing(folder).owner is None, 120)
    entries = load_existing(folder)
    assert [entry.process for entry in entries.nodes] == [None] * 4
    assert all("SIGTERM: shutting down" in log_of(folder, entry) for entry in entries.nodes)
    assert wait_until((folder / LOG_NAME).exists, 120)
    reported = f"process {process.pid}, `tanist up`, ended without stopping its cluster: stopped nodes 1, 2, 3, 1001"
    assert wait_until(lambda: reported in (folder / LOG_NAME).read_text(), 120)


def test_a_killed_up_takes_its_nodes_along_also_if_its_folder_is_gone(up: Up, folder: Path) -> None:
    process = up("--brokers", "2")
    run("pause", "2", folder=folder)  # the others end by themselves, when they miss a file
    nodes = processes(folder)
    folder.rename(folder.with_name("elsewhere"))
    process.kill()
    assert len(nodes) == 2
    assert wait_until(lambda: not any(node.alive for node in nodes), 60)


def test_an_up_that_is_killed_while_it_starts_leaves_nothing(folder: Path, up: Up) -> None:
    process = up("--brokers", "1", stdout=subprocess.DEVNULL)
    assert wait_until((folder / "node-1" / "node.log").exists, 60)  # a node runs, perhaps not noted yet
    process.kill()
    assert wait_until(lambda: not processes(folder) and load_existing(folder).owner is None, 60)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_detached_cluster_lives_on_and_has_no_watcher(folder: Path) -> None:
    command = [*TANIST, "up", "--detach", "--brokers", "1", "--port", str(free_port()), "--data", str(folder)]
    subprocess.run([*command, *FEW_PARTITIONS], check=True, timeout=90, start_new_session=True, capture_output=True)
    (node,) = processes(folder)
    titles = titles_about(folder)
    assert titles == [f"tanist: node 1, data in {folder}/node-1/data"]
    assert node.alive
    run("down", folder=folder)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_titles_name_node_and_data_folder_and_nothing_is_left_in_the_end(up: Up, folder: Path) -> None:
    process = up("--brokers", "2")
    assert sorted(title for title in titles_about(folder) if title.startswith("tanist")) == [
        f"tanist up: watcher of process {process.pid}, data in {folder}",
        f"tanist: node 1, data in {folder}/node-1/data",
        f"tanist: node 2, data in {folder}/node-2/data",
    ]
    run("down", folder=folder)
    out, _ = process.communicate(timeout=120)
    assert "another command has stopped the cluster" in out
    assert process.returncode == 0
    assert wait_until(lambda: titles_about(folder) == [], 120)
    assert not (folder / LOG_NAME).exists()


def test_nohup_is_respected(up: Up, folder: Path) -> None:
    process = up("--brokers", "1", before=("sh", "-c", 'trap "" HUP; exec "$@"', "sh"))
    process.send_signal(signal.SIGHUP)
    run("stop", "1", folder=folder)
    assert process.stdout is not None
    assert "node 1 is down" in process.stdout.readline()  # it attends still
    assert "all nodes are down" in process.stdout.readline()
    run("start", "1", folder=folder)
    assert "node 1 is up" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert out.splitlines()[-1] == "stopped"
    assert processes(folder) == []


def test_a_reset_is_no_end_of_all_nodes(up: Up, folder: Path) -> None:
    process = up("--brokers", "1")
    run("reset", "--yes", folder=folder)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert "all nodes are down" not in out
    assert out.splitlines()[-1] == "stopped"


def titles_about(folder: Path) -> list[str]:
    """The command lines of the processes that name the folder, but for ours."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            except OSError:
                continue
            if str(folder).encode() in b" ".join(words):
                found.append(b" ".join(words).decode())
    return found
