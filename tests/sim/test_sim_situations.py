"""Named situations: what is watched is there, nothing is changed by looking, and everything is put back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sized
from typing import Any

import pytest

from tanist.controller.partition_state import PartitionState
from tanist.replica.leader import LeaderState
from tanist.sim.marks.controller import CONTROLLER_SITUATIONS, mark_partition
from tanist.sim.marks.marks import Marks, watching
from tanist.sim.marks.quorum import QUORUM_SITUATIONS
from tanist.sim.marks.replicas import REPLICA_SITUATIONS
from tanist.sim.marks.situations import NODE_SITUATIONS, SITUATIONS, watching_situations
from tanist.sim.run.chaos_run import ChaosRun, run
from tanist.sim.run.coverage import EXPECTED, added
from tanist.sim.situations.clients import CLIENT_SITUATIONS

SEED = 2


def test_there_are_many_and_no_name_is_used_twice() -> None:
    tables: tuple[Sized, ...] = (
        REPLICA_SITUATIONS,
        CONTROLLER_SITUATIONS,
        QUORUM_SITUATIONS,
        NODE_SITUATIONS,
        CLIENT_SITUATIONS,
    )
    assert len(SITUATIONS) == sum(map(len, tables)) >= 60
    assert set(SITUATIONS) <= set(EXPECTED)


def test_a_run_counts_situations_and_nothing_else_under_their_names() -> None:
    counts = run(SEED).counts
    assert sum(name in SITUATIONS for name in counts) > 20
    prefixes = ("leader: ", "follower: ", "controller: ", "recovery: ", "partition: ", "quorum: ", "node: ")
    assert {name for name in counts if name.startswith(prefixes)} <= set(SITUATIONS)


def test_looking_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = run(SEED)
    monkeypatch.setattr("tanist.sim.run.chaos_run.watching_situations", lambda counts: watching(counts))
    plain = run(SEED)
    assert plain.digest == watched.digest
    assert sum(name in REPLICA_SITUATIONS for name in plain.counts) == 0


def test_everything_is_put_back_whatever_happens() -> None:
    before = dict(vars(LeaderState))
    seen: list[bool] = []

    def fail() -> None:
        with watching_situations(Counter()):
            seen.append(vars(LeaderState)["_advance"] is not before["_advance"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen == [True]
    assert dict(vars(LeaderState)) == before
    ChaosRun(SEED).run()
    assert dict(vars(LeaderState)) == before


class Something:
    """To be watched."""

    def __init__(self) -> None:
        self.value = 1

    def add(self, more: int) -> int:
        self.value += more
        return self.value


def test_what_goes_in_and_what_comes_out_is_seen() -> None:
    seen: list[Any] = []

    def table(marks: Marks) -> None:
        marks.before(Something, "add", lambda self, more: seen.append(("before", self.value, more)))
        marks.after(Something, "add", lambda result, self, more: seen.append(("after", result, more)))
        marks.around(Something, "add", lambda self, more: self.value, lambda *each: seen.append(each[:2]))

    something = Something()
    with watching(Counter(), table):
        assert something.add(2) == 3
    assert sorted(seen, key=str) == sorted([("before", 1, 2), ("after", 3, 2), (1, 3)], key=str)
    assert something.add(1) == 4
    assert len(seen) == 3


def test_a_function_that_is_not_there_is_noticed() -> None:
    with (
        pytest.raises(AttributeError, match="renamed"),
        watching(Counter(), lambda m: m.after(Something, "renamed", print)),
    ):
        pass


def state(leader: int, epoch: int, isr: tuple[int, ...], **more: Any) -> PartitionState:
    values: dict[str, Any] = {
        "replicas": (1, 2, 3),
        "isr": isr,
        "removing": (),
        "adding": (),
        "leader": leader,
        "recovering": False,
        "leader_epoch": epoch,
        "partition_epoch": epoch,
        "directories": (),
        "elr": (),
        "last_known_elr": (),
    }
    return PartitionState(**(values | more))


CHANGES = [
    (state(1, 1, (1,), elr=(2,)), state(-1, 2, (), elr=(1, 2)), "partition: ISR empty with several eligible"),
    (state(1, 1, (1, 2)), state(1, 1, (1,), elr=(2,)), "partition: ISR too small, made up for by the ELR"),
    (state(1, 1, (1,), elr=(2,)), state(1, 1, (1, 3)), "partition: ELR emptied by an ISR that is large enough"),
    (
        state(-1, 1, (), elr=(1, 2)),
        state(1, 2, (1,), elr=(2,)),
        "partition: rest of the ELR kept at an election from it",
    ),
    (state(1, 1, (1,), elr=(2,)), state(1, 1, (1, 2)), "partition: member of the ELR back in the ISR"),
    (
        state(1, 1, (1,), elr=(2,)),
        state(1, 1, (1,), last_known_elr=(2,)),
        "partition: member of the ELR moved to LastKnownElr",
    ),
    (state(1, 1, (1, 2)), state(1, 2, (1, 2)), "partition: leader elected to succeed itself"),
    (state(1, 1, (1, 2)), state(2, 2, (2,)), "partition: leader handed over to a member of the ISR"),
    (state(1, 1, (1,), recovering=True), state(1, 1, (1, 2)), "partition: recovery ended by its leader"),
    (
        state(1, 1, (1, 2)),
        state(1, 1, (1,), replicas=(1, 3)),
        "partition: member of ISR or ELR dropped by a reassignment",
    ),
]


@pytest.mark.parametrize(("before", "after", "name"), CHANGES, ids=[change[2] for change in CHANGES])
def test_changes_of_a_partition(before: PartitionState, after: PartitionState, name: str) -> None:
    counts: Counter[str] = Counter()
    mark_partition(counts, before, after, min_isr=2, elr_enabled=True)
    assert counts[name] == 1
    assert set(counts) <= set(SITUATIONS)
    counts.clear()
    mark_partition(counts, before, before, min_isr=2, elr_enabled=True)
    assert not counts[name] or name == "partition: ISR too small, made up for by the ELR"


def test_the_last_of_an_isr_without_elr() -> None:
    counts: Counter[str] = Counter()
    mark_partition(counts, state(1, 1, (1,)), state(-1, 2, (1,)), min_isr=2, elr_enabled=False)
    assert counts["partition: last member of the ISR kept without ELR"] == 1


def test_how_often_and_in_how_many_seeds() -> None:
    counts, seeds = added([Counter(a=3, b=1), Counter(a=1, b=0)])
    assert counts == Counter(a=4, b=1)
    assert seeds == Counter(a=2, b=1)
