"""The steps of each kind of episode, on a cluster that only notes what was done to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from tanist.client.metadata import PartitionView
from tanist.lab.jepsen.nemesis import Nemesis, View
from tanist.lab.jepsen.schedule import INJECTED, KINDS, Episode, possible
from tanist.lab.jepsen.target import Reach
from tanist.runtime.client.client import Address
from tanist.runtime.faults.settings import DiskState


class Noted:
    """Three nodes; 2 leads partition 0. The ISR has the live nodes, and a leader that is gone is replaced."""

    name = "noted"
    node_ids: Sequence[int] = (1, 2, 3)
    abilities = INJECTED
    addresses: Sequence[Address] = (("h", 1), ("h", 2), ("h", 3))
    properties: Mapping[str, str] = MappingProxyType({})
    data: Path | None = None

    def __init__(self) -> None:
        self.done: list[str] = []
        self.down: set[int] = set()
        self.silent: set[int] = set()
        self.leader = 2
        self.waited_s = 0.0

    def view(self, address: Address, topic: str) -> View | None:
        asked = address[1]
        if asked in self.down | self.silent:
            return None
        there = tuple(node for node in self.node_ids if node not in self.down | self.silent)
        if self.leader not in there:
            self.leader = there[0]
        return {0: PartitionView(0, self.leader, 1, (1, 2, 3), there, ())}

    def wait(self, seconds: float) -> None:
        self.waited_s += seconds

    def alive(self, node_id: int) -> bool:
        return node_id not in self.down

    def kill(self, node_id: int) -> None:
        self.done.append(f"kill {node_id}")
        self.down.add(node_id)

    def lose_power(self, node_id: int) -> str:
        self.done.append(f"lose {node_id}")
        self.down.add(node_id)
        return "all of it"

    def start(self, node_id: int) -> None:
        self.done.append(f"start {node_id}")
        self.down.remove(node_id)

    def pause(self, node_id: int) -> None:
        self.done.append(f"pause {node_id}")
        self.silent.add(node_id)

    def cut(self, source: Sequence[int], target: Sequence[int], reach: Reach) -> None:
        self.done.append(f"cut {list(source)} {list(target)} {reach}")
        self.silent |= set(target) if len(target) == 2 and list(source) == [self.leader] else set(source)

    def everybody_else(self, node_id: int) -> Sequence[int]:
        return [1001, *(each for each in self.node_ids if each != node_id)]

    def slow(self, node_id: int, to: str) -> None:
        self.done.append(f"slow {node_id} {to}")

    def disk(self, node_id: int, state: DiskState) -> None:
        self.done.append(f"disk {node_id} {state}")
        if state != "slow":
            self.down.add(node_id)

    def heal(self) -> None:
        self.done.append("heal")
        self.silent.clear()

    def close(self) -> None:
        self.done.append("close")


def _episode(kind: str, how: str) -> Episode:
    return Episode(1, kind, how, (3, 1, 2), 0, 3.0, 8.0)


def _played(kind: str, how: str) -> tuple[Noted, Nemesis]:
    target = Noted()
    nemesis = Nemesis(target, "t", target.wait, lambda line: None, target.view)
    nemesis.play(_episode(kind, how))
    return target, nemesis


@pytest.mark.parametrize(
    ("kind", "how", "steps"),
    [
        ("last-replica", "cut", ["cut [2] [1, 3] nodes", "kill 2", "heal", "heal", "start 2"]),
        ("last-replica", "pause", ["pause 1", "pause 3", "kill 2", "heal", "heal", "start 2"]),
        ("last-replica", "crash", ["kill 1", "kill 3", "kill 2", "start 1", "start 3", "heal", "start 2"]),
        ("last-standing", "pause", ["pause 1", "kill 3", "lose 2", "start 2", "start 3", "heal", "heal"]),
        ("last-standing", "cut", ["cut [1] [2, 3] nodes", "kill 3", "lose 2", "start 2", "start 3", "heal", "heal"]),
        ("crash", "two", ["kill 3", "kill 1", "heal", "start 1", "start 3"]),
        ("power-loss", "one", ["lose 3", "heal", "start 3"]),
        ("pause", "one", ["pause 3", "heal", "heal"]),
        ("partition", "one-way", ["cut [3] [1001, 1, 2] one-way", "heal", "heal"]),
        ("slow", "clients", ["slow 3 clients", "heal", "heal"]),
        ("disk", "full", ["disk 3 full", "heal", "heal", "start 3"]),
    ],
)
def test_the_steps(kind: str, how: str, steps: list[str]) -> None:
    assert _played(kind, how)[0].done == steps


@pytest.mark.parametrize(("kind", "how"), [(kind, how) for kind, ways in possible(INJECTED).items() for how in ways])
def test_afterwards_all_is_whole_and_noted(kind: str, how: str) -> None:
    target, nemesis = _played(kind, how)
    assert (target.down, target.silent) == (set(), set())
    assert nemesis.marks
    assert all(0 < mark.began_ns <= mark.ended_ns for mark in nemesis.marks)
    (played,) = nemesis.played
    assert played.began_ns <= played.ended_ns <= played.in_sync_ns
    # The fault lasts as long as was drawn, at least.
    assert target.waited_s >= 8.0


def test_every_kind_is_played() -> None:
    assert set(possible(INJECTED)) == set(KINDS)


def test_whatever_goes_wrong_on_the_way_the_cluster_is_mended() -> None:
    target = Noted()

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    nemesis = Nemesis(target, "t", interrupted, lambda line: None, target.view)
    with pytest.raises(KeyboardInterrupt):
        nemesis.play(_episode("last-replica", "pause"))
    assert (target.down, target.silent) == (set(), set())
    assert all(mark.ended_ns for mark in nemesis.marks)


def test_a_cluster_that_stays_behind_is_reported_of() -> None:
    target = Noted()
    said: list[str] = []
    nemesis = Nemesis(target, "t", target.wait, said.append, lambda address, topic: None)
    clock = iter(range(0, 10_000, 20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tanist.lab.jepsen.nemesis.time.monotonic", lambda: next(clock))
        nemesis.play(_episode("pause", "one"))
    assert nemesis.played[0].in_sync_ns == 0
    assert said[-1] == "    not all replicas in sync 60 s after the end: node 1 does not tell"
