"""Plans of reassignments: balanced, over racks, and no replica moved that need not be."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.runtime.client.reassign_plan import PlanError, plan


def test_what_is_balanced_stays() -> None:
    present = {("t", 0): (1, 2, 3), ("t", 1): (2, 3, 1), ("t", 2): (3, 1, 2)}
    assert plan(present, dict.fromkeys((1, 2, 3))) == present


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    present = {("t", index): ((1, 2), (2, 3), (3, 1))[index % 3] for index in range(12)}
    planned = plan(present, dict.fromkeys((1, 2, 3, 4)))
    moved = sum(len(set(planned[key]) - set(present[key])) for key in present)
    assert moved == 6
    assert Counter(each for replicas in planned.values() for each in replicas) == {1: 6, 2: 6, 3: 6, 4: 6}
    assert Counter(replicas[0] for replicas in planned.values()) == {1: 3, 2: 3, 3: 3, 4: 3}


def test_a_broker_that_goes_is_left() -> None:
    present = {("t", 0): (1, 2, 3), ("t", 1): (2, 4, 1)}
    planned = plan(present, dict.fromkeys((2, 3, 4)))
    assert {key: set(replicas) for key, replicas in planned.items()} == {("t", 0): {2, 3, 4}, ("t", 1): {2, 3, 4}}
    assert planned["t", 0][0] != planned["t", 1][0]


def test_replicas_of_one_partition_go_to_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    planned = plan({("t", index): (1, 2) for index in range(4)}, racks)
    assert all({racks[each] for each in replicas} == {"a", "b"} for replicas in planned.values())
    assert set(Counter(each for replicas in planned.values() for each in replicas).values()) == {2}


def test_the_number_of_replicas_may_change() -> None:
    assert plan({("t", 0): (1,)}, dict.fromkeys((1, 2, 3)), 3)["t", 0][0] == 1
    assert plan({("t", 0): (1, 2, 3)}, dict.fromkeys((1, 2, 3)), 1) == {("t", 0): (1,)}
    with pytest.raises(PlanError, match="3 replicas of a partition need as many brokers, and 2 are named"):
        plan({("t", 0): (1,)}, dict.fromkeys((1, 2)), 3)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[tuple[str, int], tuple[int, ...]], dict[int, str | None]]:
    everywhere = draw(st.lists(st.integers(1, 9), min_size=1, max_size=9, unique=True))
    brokers = draw(st.lists(st.sampled_from(everywhere), min_size=1, unique=True))
    racked = draw(st.booleans())
    racks = {each: draw(st.sampled_from("abc")) if racked else None for each in brokers}
    factor = draw(st.integers(1, len(brokers)))
    replicas = st.permutations(everywhere).map(lambda order: tuple(order[:factor]))
    return {("t", index): draw(replicas) for index in range(draw(st.integers(0, 20)))}, racks


@given(clusters())
def test_every_plan_holds(
    cluster: tuple[dict[tuple[str, int], tuple[int, ...]], dict[int, str | None]],
) -> None:
    present, racks = cluster
    planned = plan(present, racks)
    assert planned.keys() == present.keys()
    for key, replicas in planned.items():
        assert len(replicas) == len(set(replicas)) == len(present[key])
        assert set(replicas) <= racks.keys()
        most_racks = min(len(replicas), len(set(racks.values())))
        assert len({racks[each] for each in replicas}) == most_racks
    if len(set(racks.values())) == 1:
        load = Counter(dict.fromkeys(racks, 0))
        load.update(each for replicas in planned.values() for each in replicas)
        assert max(load.values()) - min(load.values()) <= 1
    assert plan(planned, racks) == planned
