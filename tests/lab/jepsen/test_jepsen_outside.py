"""A cluster that is known by its commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tanist.lab.jepsen.outside import OutsideCluster
from tanist.lab.jepsen.target import RunFailed


def _cluster(folder: Path, **commands: str) -> OutsideCluster:
    noted = {what: f"echo {what} {{node}} >> {folder}/log" for what in ("start", "crash")}
    return OutsideCluster({2: ("h", 92), 1: ("h", 91), 3: ("h", 93)}, noted | commands)


def _log(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines()


def test_abilities_follow_from_the_commands(tmp_path: Path) -> None:
    assert _cluster(tmp_path).abilities == {"crash"}
    every = _cluster(tmp_path, lose="l {node}", pause="p {node}", resume="r {node}")
    assert every.abilities == {"crash", "power-loss", "pause"}
    assert (every.node_ids, every.addresses) == ([1, 2, 3], [("h", 91), ("h", 92), ("h", 93)])


def test_the_commands_are_run_with_the_node(tmp_path: Path) -> None:
    cluster = _cluster(tmp_path, lose=f"echo lose {{node}} >> {tmp_path}/log; echo 7 bytes; echo more")
    cluster.kill(2)
    assert not cluster.alive(2)
    cluster.start(2)
    assert cluster.alive(2)
    assert cluster.lose_power(3) == "7 bytes"
    assert _log(tmp_path) == ["crash 2", "start 2", "crash 3", "lose 3"]


def test_what_the_test_has_broken_it_mends_in_the_end(tmp_path: Path) -> None:
    noted = {what: f"echo {what} {{node}} >> {tmp_path}/log" for what in ("pause", "resume")}
    cluster = _cluster(tmp_path, **noted)
    cluster.kill(1)
    cluster.pause(3)
    cluster.close()
    cluster.close()
    assert _log(tmp_path) == ["crash 1", "pause 3", "resume 3", "start 1"]


def test_a_command_that_fails_says_what_it_said(tmp_path: Path) -> None:
    cluster = _cluster(tmp_path, start="echo no such node {node} >&2; exit 3")
    with pytest.raises(RunFailed, match=r"ended with 3: no such node 1"):
        cluster.start(1)


def test_a_command_that_does_not_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tanist.lab.jepsen.outside.COMMAND_PATIENCE_S", 0.05)
    with pytest.raises(RunFailed, match="a command that starts a node must return"):
        _cluster(tmp_path, start="tail -f /dev/null # {node}").start(1)
