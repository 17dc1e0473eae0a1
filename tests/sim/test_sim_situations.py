"""Named situations: each is in one table under one name, and nothing is changed by counting them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tanist.controller.image.committed_events import partition_changed
from tanist.controller.image.partition_state import PartitionState
from tanist.events.event import Event
from tanist.sim.run.chaos_run import run
from tanist.sim.run.coverage import EXPECTED, added
from tanist.sim.situations import BEGUN_ANEW, FETCHED, OF_NODES, PRODUCED, SITUATIONS, SituationCounter
from tanist.sim.world.world import World

SEED = 2


def test_there_are_many_and_no_name_is_used_twice() -> None:
    of_clients = [BEGUN_ANEW, *(name for name, _ in (*PRODUCED.values(), *FETCHED.values()))]
    assert len(SITUATIONS) == len(OF_NODES) + len(of_clients) >= 120
    assert set(SITUATIONS) <= set(EXPECTED)


def test_a_run_counts_situations_and_nothing_else_under_their_names() -> None:
    counts = run(SEED).counts
    assert sum(name in SITUATIONS for name in counts) > 20
    prefixes = ("leader: ", "follower: ", "controller: ", "recovery: ", "partition: ", "quorum: ", "node: ")
    assert {name for name in counts if name.startswith(prefixes)} <= set(SITUATIONS)


def test_looking_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = run(SEED)
    monkeypatch.setattr("tanist.sim.run.chaos_run.watch_situations", lambda world: None)
    plain = run(SEED)
    assert plain.digest == watched.digest
    assert sum(name in plain.counts for name in OF_NODES) == 0


def counted(*events: Event) -> Counter[str]:
    counts: Counter[str] = Counter()
    world = World(1)
    counter = SituationCounter(counts, OF_NODES)
    for event in events:
        counter.observed(world.hosts[1], event)
    return counts


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
    counts = counted(partition_changed("t-0", before, after, min_isr=2, elr_enabled=True))
    assert counts[name] == 1
    assert set(counts) <= set(SITUATIONS)
    same = counted(partition_changed("t-0", before, before, min_isr=2, elr_enabled=True))
    assert not same[name] or name == "partition: ISR too small, made up for by the ELR"


def test_the_last_of_an_isr_without_elr() -> None:
    before, after = state(1, 1, (1,)), state(-1, 2, (1,))
    counts = counted(partition_changed("t-0", before, after, min_isr=2, elr_enabled=False))
    assert counts["partition: last member of the ISR kept without ELR"] == 1


def test_how_often_and_in_how_many_seeds() -> None:
    counts, seeds = added([Counter(a=3, b=1), Counter(a=1, b=0)])
    assert counts == Counter(a=4, b=1)
    assert seeds == Counter(a=2, b=1)
