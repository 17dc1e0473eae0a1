"""Where new replicas go."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.controller.placement import PlacementError, Placer, UsableBroker, shuffle


class Dice:
    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)

    def below(self, n: int) -> int:
        return self.random.randrange(n)

    def bytes(self, n: int) -> bytes:
        return self.random.randbytes(n)


def brokers(racks: dict[str | None, list[int]], fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    return [UsableBroker(each, rack, each in fenced) for rack, ids in racks.items() for each in ids]


def test_too_few_brokers_are_refused_in_kafkas_words() -> None:
    with pytest.raises(PlacementError, match="larger than 0"):
        Placer(brokers({None: [1]}), Dice()).place(0)
    with pytest.raises(PlacementError, match="All brokers are currently fenced"):
        Placer(brokers({None: [1]}, fenced=(1,)), Dice()).place(1)
    with pytest.raises(PlacementError, match="All brokers are currently fenced"):
        Placer([], Dice()).place(1)
    with pytest.raises(
        PlacementError, match=r"factor of 3 cannot be reached because only 2 broker\(s\) are registered"
    ):
        Placer(brokers({None: [1, 2]}), Dice()).place(3)


@given(
    racks=st.dictionaries(st.sampled_from((None, "a", "b", "c")), st.integers(1, 4), min_size=1),
    fenced=st.sets(st.integers(0, 15)),
    seed=st.integers(0, 999),
    count=st.integers(1, 30),
    data=st.data(),
)
def test_every_assignment_is_sound(
    racks: dict[str | None, int], fenced: set[int], seed: int, count: int, data: st.DataObject
) -> None:
    numbers = iter(range(16))
    usable = [UsableBroker(next(numbers), rack) for rack, size in racks.items() for _ in range(size)]
    usable = [UsableBroker(each.broker_id, each.rack, each.broker_id in fenced) for each in usable]
    unfenced = {each.broker_id for each in usable if not each.fenced}
    if not unfenced:
        return
    factor = data.draw(st.integers(1, len(usable)))
    rack_of = {each.broker_id: each.rack for each in usable}
    placer = Placer(usable, Dice(seed))
    for _ in range(count):
        replicas = placer.place(factor)
        assert len(set(replicas)) == factor
        assert replicas[0] in unfenced
        # As many racks as there are replicas or racks.
        assert len({rack_of[each] for each in replicas}) == min(factor, len(racks))


@pytest.mark.parametrize("racks", [{None: [1, 2, 3, 4, 5]}, {"a": [1, 2], "b": [3, 4]}, {"a": [1], "b": [2], "c": [3]}])
@pytest.mark.parametrize("seed", range(5))
def test_leaders_and_replicas_are_spread_evenly(racks: dict[str | None, list[int]], seed: int) -> None:
    everybody = [each for ids in racks.values() for each in ids]
    placer = Placer(brokers(racks), Dice(seed))
    assignments = [placer.place(2) for _ in range(len(everybody) * 6)]
    leaders = Counter(each[0] for each in assignments)
    assert set(leaders.values()) == {6}
    replicas = Counter(broker for each in assignments for broker in each)
    assert max(replicas.values()) - min(replicas.values()) <= 6


def test_the_start_is_random() -> None:
    firsts = {Placer(brokers({None: [1, 2, 3]}), Dice(seed)).place(1) for seed in range(30)}
    assert firsts == {(1,), (2,), (3,)}


def test_the_same_rng_gives_the_same_assignment_whatever_the_order_of_brokers() -> None:
    usable = brokers({"a": [1, 2], None: [3], "b": [4, 5]})
    placed = [Placer(order, Dice(7)).place(4) for order in (usable, usable[::-1])]
    assert placed[0] == placed[1]


def test_fenced_brokers_follow_only_where_a_rack_has_nobody_else() -> None:
    usable = brokers({"a": [1, 2], "b": [3, 4]}, fenced=(2, 3))
    for seed in range(10):
        placer = Placer(usable, Dice(seed))
        for _ in range(4):
            assert set(placer.place(2)) == {1, 4}
            assert set(placer.place(3)[:2]) == {1, 4}


def test_sets_of_brokers_do_not_come_back_forever() -> None:
    placer = Placer(brokers({None: [1, 2, 3, 4, 5, 6]}), Dice(3))
    assert len({frozenset(placer.place(3)) for _ in range(60)}) > 6


def test_shuffle_reaches_every_order() -> None:
    dice = Dice(1)
    orders = Counter[tuple[int, ...]]()
    for _ in range(600):
        items = [1, 2, 3]
        shuffle(items, dice)
        orders[tuple(items)] += 1
    assert len(orders) == 6
    assert min(orders.values()) > 60
