"""`tanist wait` and `tanist logs` on a cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.runtime.cluster.node_logs import NodeLog, merged
from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, following, free_port, json_lines, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    command = [*TANIST, "up", "--detach", *FEW_PARTITIONS, "--port", str(free_port()), "--data", str(folder)]
    # `wait` begins before there is anything to ask.
    waiting = subprocess.Popen([*TANIST, "wait", "--brokers", "3", "--data", str(folder)])
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert "ready in " in done.stdout, done.stderr
    assert waiting.wait(60) == 0
    run("topics", "create", "orders", "--replica-assignment", "1:2:3,2:3:1", folder=folder)
    yield folder
    run("down", folder=folder)


def test_waits_for_replicas_leaders_and_brokers(folder: Path) -> None:
    run("wait", "--topic", "orders", "--isr", "3", "--leader", "any", folder=folder)
    run("wait", "--topic", "orders", "--partition", "1", "--leader", "2", folder=folder)
    said = run("wait", "--topic", "orders", "--leader", "2", "--timeout", "0", folder=folder, code=3)
    assert "not within 0 s: orders-0 has leader 1" in said
    assert "there is no topic nowhere" in run("wait", "--topic", "nowhere", "--timeout", "0.1", folder=folder, code=3)

    run("crash", "3", folder=folder)
    run("wait", "--topic", "orders", "--isr", "2", "--brokers", "2", folder=folder)
    late = run("wait", "--brokers", "3", "--timeout", "0.1", folder=folder, code=3)
    assert "not within 0.1 s: 2 brokers in the cluster" in late
    run("start", "3", folder=folder)
    answer = run("wait", "--topic", "orders", "--isr", "3", "--brokers", "3", "--json", folder=folder)
    assert (answer["came"], answer["lack"]) == (True, None)


def test_waits_for_a_group(folder: Path) -> None:
    run("produce", "orders", "--partition", "0", folder=folder, stdin="a\nb\n")
    run("groups", "reset-offsets", "g", "--topic", "orders", "--to-earliest", "--execute", folder=folder)
    said = run("wait", "--group", "g", "--lag", "1", "--members", "0", "--timeout", "0", folder=folder, code=3)
    assert "g is 2 records behind" in said
    run("wait", "--group", "g", "--lag", "2", "--members", "0", folder=folder)
    reading = [*TANIST, "consume", "orders", "--group", "g", "--group-protocol", "classic", "--data", str(folder)]
    with subprocess.Popen(reading, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as member:
        run("wait", "--group", "g", "--members", "1", "--lag", "0", folder=folder)
        member.terminate()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a condition"),
        (("--isr", "3"), "--isr needs --topic"),
        (("--brokers", "3", "--lag", "0"), "--lag needs --group"),
        (("--topic", "t", "--leader", "me"), "neither a broker's id nor"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in run("wait", *arguments, folder=folder, code=2)


def test_logs_of_all_nodes_stand_in_the_order_of_time(folder: Path) -> None:
    found = [json.loads(line) for line in run("logs", "-n", "0", folder=folder).splitlines()]
    assert found == []
    lines = json_lines("logs", folder=folder)
    assert {line["node"] for line in lines} == {1, 2, 3}
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    assert {line["node"] for line in json_lines("logs", "2", folder=folder)} == {2}
    assert {line["level"] for line in json_lines("logs", "--level", "WARN", folder=folder)} <= {"WARN", "ERROR"}
    assert "there is no node 7" in run("logs", "7", folder=folder, code=1)
    shown = run("logs", "-n", "1", folder=folder).splitlines()
    assert len(shown) == 1


def test_logs_are_followed(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with following("logs", "-f", "-n", "1", "2", folder=folder, out=out):
        run("stop", "2", folder=folder)
        assert wait_until(lambda: "has shut down" in out.read_text(), 120)
        run("start", "2", folder=folder)
        assert wait_until(lambda: "is unfenced" in out.read_text(), 120)


def test_a_line_is_whole_before_it_is_shown_and_lines_without_a_time_stay_with_theirs(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    log, other = NodeLog(1, path), NodeLog(2, tmp_path / "none")
    assert list(merged([log, other])) == []
    path.write_text("before\n[2026-01-01 00:00:00,001] ERROR bad\nTraceback\n  more\n[2026-01-01 00:00:00,002] INFO go")
    found = list(merged([log, other], final=False))
    assert [(each.time[-3:], each.level, each.text) for each in found] == [
        ("", "INFO", "before"),
        ("001", "ERROR", "bad\nTraceback\n  more"),
    ]
    with path.open("a") as file:
        file.write("od\n")
    assert [each.text for each in log.entries(final=False)] == ["good"]
    path.unlink()
    path.write_text("[2026-01-01 00:00:00,003] INFO new\n")
    assert [each.text for each in log.entries(final=False)] == ["new"]
    log.close()
