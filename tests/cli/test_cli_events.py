"""`tanist events`, and the events in `tanist logs --json`."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, following, free_port, json_lines, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    run("up", "--detach", "--port", str(free_port()), *FEW_PARTITIONS, folder=folder)
    yield folder
    run("down", folder=folder)


def test_events_of_all_nodes_by_time_and_of_some(folder: Path) -> None:
    found = json_lines("events", folder=folder)
    assert {each["node"] for each in found} == {1, 2, 3}
    assert [each["ms"] for each in found] == sorted(each["ms"] for each in found)
    assert {each["node"] for each in json_lines("events", "--node", "2", folder=folder)} == {2}
    assert len(json_lines("events", "-n", "3", folder=folder)) == 3
    kind = str(found[0]["event"])
    assert {each["event"] for each in json_lines("events", kind, folder=folder)} == {kind}
    assert {"event": kind} in json_lines("events", "--kinds", folder=folder)
    assert "there is no node 7" in run("events", "--node", "7", folder=folder, code=1)
    assert "Nothing is no kind of event; --kinds lists them" in run("events", "Nothing", folder=folder, code=2)


def test_a_line_of_the_log_has_the_event_that_it_was_made_from(folder: Path) -> None:
    logged = [line for line in json_lines("logs", folder=folder) if "event" in line]
    assert {line["node"] for line in logged} == {1, 2, 3}
    assert all(line["text"] for line in logged)


def test_events_are_followed(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with following("events", "-f", "-n", "1", folder=folder, out=out):
        before = len(out.read_text().splitlines())
        run("stop", "2", folder=folder)
        run("start", "2", folder=folder)
        assert wait_until(lambda: len(out.read_text().splitlines()) > before, 120)


def test_a_changed_field_shows_both_values_and_one_that_stays_none(folder: Path) -> None:
    run("topics", "create", "moved", "--replica-assignment", "1:2:3", folder=folder)
    run("crash", "3", folder=folder)
    run("wait", "--topic", "moved", "--isr", "2", folder=folder)
    shown = run("events", "PartitionChanged", "--topic", "moved", folder=folder).splitlines()[-1]
    assert "  isr [1, 2, 3] -> [1, 2]  " in shown
    assert "elr" not in shown.replace("elr_enabled", "")
    run("start", "3", folder=folder)


def test_what_a_node_of_a_container_does_before_it_serves_and_that_it_is_ready_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    run("up", "--detach", "--brokers", "1", "--port", str(free_port()), *FEW_PARTITIONS, folder=folder)
    run("down", folder=folder)
    (properties,) = folder.glob("*/server.properties")
    first = next(line for line in properties.read_text().splitlines() if line.startswith("log.dirs=")).partition("=")[2]
    with (tmp_path / "log").open("w") as log:
        node = subprocess.Popen(
            [*TANIST, "serve", str(properties), "--from-environment", f"--override=log.dirs={first},{tmp_path}/second"],
            env=os.environ | {"CLUSTER_ID": "another"},
            stdout=log,
            stderr=log,
        )
    try:
        kinds = ("ClusterIdIgnored", "FolderFormatted", "NodeStarted", "BrokerReady", "ServerStarted")

        def found() -> list[str]:
            """Since the process began."""
            seen = [str(each["event"]) for each in json_lines("events", *kinds, folder=folder)]
            return seen[seen.index("ClusterIdIgnored") :] if "ClusterIdIgnored" in seen else []

        assert wait_until(lambda: node.poll() is not None or "ServerStarted" in found(), 120)
        assert found() == list(kinds), (tmp_path / "log").read_text()
    finally:
        node.send_signal(signal.SIGTERM)
        node.wait(60)
