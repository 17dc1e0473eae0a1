"""`tanist top`: what stands where, and how wide."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.cli.output.top_screen import screen
from tanist.runtime.client.activity import Sample, rates
from tanist.runtime.client.admin import PartitionDescription
from tests.cli import forked
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run


def partition(number: int, leader: int, isr: tuple[int, ...]) -> PartitionDescription:
    return PartitionDescription(number, leader, 0, (1, 2, 3), isr, (), (), ())


def look(at_s: float, ends: dict[tuple[str, int], int]) -> Sample:
    long = "a-topic-with-a-name-that-fills-the-line"
    partitions = {
        ("t", 0): partition(0, 1, (1, 2, 3)),
        ("t", 1): partition(1, 2, (1, 2, 3)),
        (long, 12): partition(12, 1, (1, 2)),
        ("u", 0): partition(0, -1, ()),
    }
    committed = {"billing": {("t", 0): 40, ("t", 1): 500}, "a-group-with-a-long-name-too": {("t", 0): 10}}
    return Sample(at_s, frozenset({1, 2}), 2, partitions, ends, committed)


def test_troubles_stand_first_then_the_busiest_and_all_fits_80_columns() -> None:
    before = look(10.0, {("t", 0): 100, ("t", 1): 1000})
    after = look(12.0, {("t", 0): 103, ("t", 1): 5000})
    lines = list(screen(before, after, (), 10, "12:00:00"))
    assert lines[0] == "12:00:00  2 brokers (3 down), controller 2, 4 partitions, 2002 records/s"
    assert max(map(len, lines)) < 80
    words = [line.split() for line in lines]
    assert words[3:6] == [
        ["1", "up", "2", "4", "3", "1.5"],
        ["2", "up", "1", "4", "3", "2000"],
        ["3", "down", "0", "4", "2", "0"],
    ]
    assert words[8] == ["u-0", "none", "-!", "-", "-", "-"]
    assert words[9] == ["a-topic-with-a-name..-12", "1", "1,2!", "-", "-", "-"]
    assert words[10] == ["t-1", "2", "1,2,3", "5000", "2000", "4500", "billing"]
    assert words[11][:6] == ["t-0", "1", "1,2,3", "103", "1.5", "93"]
    few = list(screen(before, after, ("t",), 1, "12:00:00"))
    assert few[-1].startswith("and 1 more partition:")


def test_a_log_that_became_shorter_has_no_negative_rate() -> None:
    assert rates(look(1.0, {("t", 0): 100}), look(2.0, {("t", 0): 50, ("t", 1): 9})) == {("t", 0): 0.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    command = [*TANIST, "up", "--detach", "--brokers", "1", *FEW_PARTITIONS, "--port", str(free_port())]
    done = subprocess.run([*command, "--data", str(folder)], capture_output=True, text=True, check=False, timeout=90)
    assert "ready in " in done.stdout, done.stderr
    yield folder
    run("down", folder=folder)


def test_in_a_pipe_it_is_one_look(folder: Path) -> None:
    run("topics", "create", "orders", "--partitions", "2", folder=folder)
    run("produce", "orders", "--partition", "1", folder=folder, stdin="a\nb\n")
    run("groups", "reset-offsets", "billing", "--topic", "orders", "--to-earliest", "--execute", folder=folder)
    shown = run("top", "--interval", "0.1", folder=folder)
    assert "1 broker, controller 1, 2 partitions, 0 records/s" in shown
    (line,) = (line.split() for line in shown.splitlines() if line.startswith("orders-1"))
    assert line == ["orders-1", "1", "1", "2", "0", "2", "billing"]
    done = subprocess.run(
        [*TANIST, "top", "--interval", "0.1", "--count", "2", "--data", str(folder)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.count("BROKER ") == 2
    assert "\x1b" not in done.stdout


def test_q_ends_it_and_it_says_so() -> None:
    with socket.socket() as reserved:  # nobody answers there: what is wrong is a look as well
        reserved.bind(("127.0.0.1", 0))
        master, slave = pty.openpty()
        pid = forked.begin(
            ["top", "--bootstrap", f"127.0.0.1:{reserved.getsockname()[1]}", "--interval", "60"], slave, slave, slave
        )
        os.close(slave)
        said = b""
        while b"q: quit" not in said:
            said += os.read(master, 1024)  # raises if it has ended
        os.write(master, b"xq")
        assert forked.ended(pid) == 0
        assert termios.tcgetattr(master)[3] & termios.ICANON
        os.close(master)
