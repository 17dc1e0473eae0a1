"""The client's range assignor: Kafka's ranges, the same as the broker's own for the same members and topics."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tanist.client.range_assignor import Subscription, assign_range
from tanist.coordinator.consumer import assignors


def test_the_first_ranges_are_longer_by_one() -> None:
    members = {"m1": Subscription(["a", "b"]), "m2": Subscription(["a", "b"]), "m3": Subscription(["b"])}
    assert assign_range(members, {"a": 3, "b": 7}) == {
        "m1": {"a": range(2), "b": range(3)},
        "m2": {"a": range(2, 3), "b": range(3, 5)},
        "m3": {"b": range(5, 7)},
    }


def test_more_members_than_partitions_leave_the_last_ones_without_any() -> None:
    assert assign_range({"m2": Subscription(["a"]), "m1": Subscription(["a"])}, {"a": 1}) == {
        "m1": {"a": range(1)},
        "m2": {},
    }


def test_static_members_come_first_by_their_instance_ids() -> None:
    members = {"m1": Subscription(["a"]), "m2": Subscription(["a"], "y"), "m3": Subscription(["a"], "x")}
    made = assign_range(members, {"a": 3})
    assert [made[member_id]["a"] for member_id in ("m3", "m2", "m1")] == [range(1), range(1, 2), range(2, 3)]


def test_nobody_gets_a_topic_that_does_not_exist() -> None:
    assert assign_range({"m1": Subscription(["gone", "a"])}, {"a": 2}) == {"m1": {"a": range(2)}}


topics = st.sampled_from(["a", "b", "c"])
members = st.dictionaries(
    st.text("mn01", min_size=1, max_size=3),
    st.builds(Subscription, st.frozensets(topics, max_size=3), st.none() | st.text("xy", min_size=1, max_size=2)),
    max_size=6,
)


@given(members, st.dictionaries(topics, st.integers(0, 9)))
def test_the_broker_assigns_the_same_ranges(subscriptions: dict[str, Subscription], partitions: dict[str, int]) -> None:
    ids = {"a": UUID(int=1), "b": UUID(int=2), "c": UUID(int=3)}
    theirs = assignors.assign_range(
        {
            member_id: assignors.Subscriber(frozenset(ids[topic] for topic in each.topics), each.group_instance_id, {})
            for member_id, each in subscriptions.items()
        },
        {ids[topic]: count for topic, count in partitions.items()},
    )
    ours = assign_range(subscriptions, partitions)
    assert {
        member_id: {ids[topic]: frozenset(indexes) for topic, indexes in assigned.items()}
        for member_id, assigned in ours.items()
    } == theirs
