"""The server-side assignors: every partition to one of its subscribers, evenly, and with little on the move."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tanist.coordinator.consumer.assignors import Subscriber, assign_range, assign_uniform
from tanist.coordinator.consumer.member import Target

TOPICS = [UUID(int=number + 1) for number in range(4)]


def members_of(subscriptions: list[set[int]], targets: dict[str, Target] | None = None) -> dict[str, Subscriber]:
    return {
        f"m{number}": Subscriber(
            frozenset(TOPICS[index] for index in topics), None, (targets or {}).get(f"m{number}", {})
        )
        for number, topics in enumerate(subscriptions)
    }


clusters = st.tuples(
    st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=6),
    st.lists(st.integers(1, 9), min_size=4, max_size=4),
)


def check_complete(members: dict[str, Subscriber], counts: dict[UUID, int], made: dict[str, Target]) -> None:
    assert made.keys() == members.keys()
    places = Counter((t, i) for target in made.values() for t, indexes in target.items() for i in indexes)
    read = {topic for member in members.values() for topic in member.topics}
    assert places == Counter((topic, index) for topic in counts if topic in read for index in range(counts[topic]))
    for member_id, target in made.items():
        assert target.keys() <= members[member_id].topics


@given(clusters)
def test_every_partition_goes_to_one_of_its_subscribers(cluster: tuple[list[set[int]], list[int]]) -> None:
    members, counts = members_of(cluster[0]), dict(zip(TOPICS, cluster[1]))
    check_complete(members, counts, assign_uniform(members, counts))
    check_complete(members, counts, assign_range(members, counts))


def sizes(made: dict[str, Target]) -> list[int]:
    return [sum(len(indexes) for indexes in target.values()) for target in made.values()]


@given(st.integers(1, 7), st.lists(st.integers(1, 9), min_size=4, max_size=4))
def test_uniform_differs_by_one_at_most_where_all_read_the_same(count: int, partitions: list[int]) -> None:
    members, counts = members_of([{0, 1, 2, 3}] * count), dict(zip(TOPICS, partitions))
    made = sizes(assign_uniform(members, counts))
    assert max(made) - min(made) <= 1


@given(clusters)
def test_uniform_is_as_even_as_moving_one_partition_can_make_it(cluster: tuple[list[set[int]], list[int]]) -> None:
    members, counts = members_of(cluster[0]), dict(zip(TOPICS, cluster[1]))
    made = assign_uniform(members, counts)
    held = dict(zip(made, sizes(made)))
    for member_id, target in made.items():
        for topic_id in target:
            for other_id, other in members.items():
                assert topic_id not in other.topics or held[other_id] + 1 >= held[member_id]


@given(st.integers(2, 6), st.lists(st.integers(1, 9), min_size=4, max_size=4), st.booleans())
def test_uniform_moves_no_more_than_it_must(count: int, partitions: list[int], comes: bool) -> None:
    counts = dict(zip(TOPICS, partitions))
    before = assign_uniform(members_of([{0, 1, 2, 3}] * count), counts)
    now = count + 1 if comes else count - 1
    after = assign_uniform(members_of([{0, 1, 2, 3}] * now, before), counts)
    had = {(t, i): m for m, target in before.items() for t, indexes in target.items() for i in indexes}
    moved = [
        place for m, target in after.items() for t, ii in target.items() for i in ii if had[(place := (t, i))] != m
    ]
    if comes:
        assert len(moved) == sum(len(indexes) for indexes in after[f"m{count}"].values())
    else:
        gone = f"m{count - 1}"
        assert set(moved) == {place for place, member_id in had.items() if member_id == gone}


def test_range_gives_co_partitioned_topics_to_the_same_members_and_static_ones_come_first() -> None:
    topics = frozenset(TOPICS[:2])
    members = {"z": Subscriber(topics, "a-static", {}), "a": Subscriber(topics, None, {})}
    made = assign_range(members, {TOPICS[0]: 3, TOPICS[1]: 3})
    assert made["z"] == {TOPICS[0]: frozenset({0, 1}), TOPICS[1]: frozenset({0, 1})}
    assert made["a"] == {TOPICS[0]: frozenset({2}), TOPICS[1]: frozenset({2})}
