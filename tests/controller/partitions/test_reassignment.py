"""Reassignments: rules 104-107 and the KIP's condition on cancelling."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.controller.partitions.assignment import Completion, Reassignment, Reversal, complete, reassign, revert
from tanist.controller.partitions.reassignment import alter_partition_reassignments, list_partition_reassignments
from tanist.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tanist.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.controller.world import World

some_replicas = st.lists(st.integers(1, 7), min_size=1, max_size=5, unique=True).map(tuple)


def world(elr: bool = False, **config: str) -> World:
    return World(
        {
            "cluster": {"brokers": [1, 2, 3, 4, 5, 6], "unfenced": [1, 2, 3, 4, 5], "elr": elr},
            "topics": {"foo": {"assignments": [[1, 2, 3]], "config": config}},
        }
    )


def expect(there: World, **fields: Any) -> None:
    there.expect({"foo-0": fields})


def move(there: World, replicas: list[int] | None, **more: Any) -> None:
    there.reassign({"topic": "foo", "p": 0, "replicas": replicas, **more})


# -- lists ------------------------------------------------------------------------------------------------------------


def test_rule_104_target_first_then_what_goes() -> None:
    assert reassign((3, 2, 1), (4, 1)) == Reassignment((4, 1, 2, 3), (2, 3), (4,))
    assert reassign((1, 2, 3), (3, 2, 1)) == Reassignment((3, 2, 1))


@given(some_replicas, some_replicas)
def test_rule_104_nobody_is_lost_or_doubled(current: tuple[int, ...], target: tuple[int, ...]) -> None:
    moving = reassign(current, target)
    assert sorted(moving.replicas) == sorted(set(current) | set(target))
    assert moving.replicas[: len(target)] == target
    assert not set(moving.adding) & set(current)
    assert set(moving.removing) <= set(current)
    again = reassign(moving.replicas, target, moving.adding)
    assert (set(again.replicas), again.removing, again.adding) == (set(moving.replicas), moving.removing, moving.adding)


@pytest.mark.parametrize(
    ("moving", "isr", "done"),
    [
        (Reassignment((1, 2)), (1, 2), None),
        (Reassignment((4, 1, 2), (2,), (4,)), (1, 2, 4), Completion((4, 1), (1, 4))),
        (Reassignment((4, 1, 2), (2,), (4,)), (1, 2), None),
        (Reassignment((1, 2, 3), (3,), ()), (1, 3), None),
        (Reassignment((1, 2, 3), (3,), ()), (1, 2, 3), Completion((1, 2), (1, 2))),
        (Reassignment((1, 2, 3), (3,), ()), (3,), None),
        (Reassignment((1, 2, 4), (), (4,)), (2, 4), Completion((1, 2, 4), (2, 4))),
    ],
    ids=["none", "all in", "added one lags", "pure removal lags", "pure removal", "nobody stays", "pure addition"],
)
def test_rule_105_completion(moving: Reassignment, isr: tuple[int, ...], done: Completion | None) -> None:
    assert complete(moving, isr) == done


@given(some_replicas, some_replicas, st.data())
def test_rule_105_what_is_complete_has_no_stranger_and_all_newcomers(
    current: tuple[int, ...], target: tuple[int, ...], data: st.DataObject
) -> None:
    moving = reassign(current, target)
    isr = tuple(data.draw(st.lists(st.sampled_from(moving.replicas), unique=True)))
    done = complete(moving, isr)
    if done is not None:
        assert done.replicas == target
        assert set(moving.adding) <= set(done.isr) <= set(target)


def test_rule_106_cancelling() -> None:
    assert revert(Reassignment((4, 1, 2), (2,), (4,)), (4, 2)) == Reversal((1, 2), (2,), unclean=False)
    assert revert(Reassignment((4, 1, 2), (2,), (4,)), (4,)) == Reversal((1, 2), (1,), unclean=True)
    with pytest.raises(ValueError, match="no replica"):
        revert(Reassignment((4,), (), (4,)), (4,))


# -- requests ---------------------------------------------------------------------------------------------------------


def test_rule_104_a_second_reassignment_removes_what_the_first_was_adding() -> None:
    there = world()
    move(there, [4, 2, 3])
    expect(there, replicas=[4, 2, 3, 1], removing=[1], adding=[4])
    move(there, [5, 2, 3])
    expect(there, replicas=[5, 2, 3, 1, 4], removing=[1, 4], adding=[5])
    move(there, [1, 2, 3, 4, 5])
    expect(there, replicas=[1, 2, 3, 4, 5], removing=[], adding=[5])


def test_deviation_104_the_same_wish_twice_is_the_wish_once() -> None:
    """A request that is repeated: the newcomer is still on its way, and goes when the reassignment is cancelled."""
    there = world()
    for _ in range(2):
        move(there, [1, 2, 4])
        expect(there, replicas=[1, 2, 4, 3], removing=[3], adding=[4])
    move(there, None)
    expect(there, replicas=[1, 2, 3], removing=[], adding=[])
    for _ in range(2):
        move(there, [1, 2, 3, 4])
        expect(there, replicas=[1, 2, 3, 4], removing=[], adding=[4])
    move(there, None)
    expect(there, replicas=[1, 2, 3], removing=[], adding=[])


def test_rule_106_a_reorder_is_done_in_the_same_record() -> None:
    there = world()
    move(there, [3, 2, 1])
    expect(there, replicas=[3, 2, 1], removing=[], adding=[], leader=1, leader_epoch=0, partition_epoch=1)


def test_rule_106_a_satisfied_removal_is_done_in_the_same_record() -> None:
    there = world()
    move(there, [2, 3])
    expect(there, replicas=[2, 3], isr=[2, 3], leader=2, leader_epoch=1, removing=[])


def test_rule_106_cancelling_keeps_who_was_there() -> None:
    there = world()
    move(there, [4, 5])
    expect(there, replicas=[4, 5, 1, 2, 3])
    there.alter_partition({"topic": "foo", "p": 0, "from": 1, "isr": [1, 2, 3, 4]})
    move(there, None)
    expect(there, replicas=[1, 2, 3], isr=[1, 2, 3], removing=[], adding=[], leader_epoch=1)
    move(there, None, expect_error="NO_REASSIGNMENT_IN_PROGRESS")


@pytest.mark.parametrize(("allowed", "error"), [("false", "INVALID_REPLICA_ASSIGNMENT"), ("true", "NONE")])
def test_rule_106_an_unclean_cancel_needs_the_configuration(allowed: str, error: str) -> None:
    there = world(False, **{"unclean.leader.election.enable": allowed})
    move(there, [4, 5])
    there.alter_partition({"topic": "foo", "p": 0, "from": 1, "isr": [1, 4]})
    there.fence(1)
    expect(there, isr=[4], leader=4)
    move(there, None, expect_error=error)
    if error == "NONE":
        expect(there, replicas=[1, 2, 3], isr=[2], leader=2, recovery="RECOVERING")


def test_deviation_106_an_unclean_cancel_declares_nobody_in_sync_with_elr() -> None:
    there = world(elr=True, **{"unclean.leader.election.enable": "true"})
    move(there, [4, 5])
    there.alter_partition({"topic": "foo", "p": 0, "from": 1, "isr": [1, 4]})
    for broker in (1, 2, 3):
        there.fence(broker)
    expect(there, isr=[4], leader=4)
    move(there, None)
    # 1, the first of those who stay, may lack what 4 has committed alone: it must not come back as an ISR member.
    expect(there, replicas=[1, 2, 3], isr=[], leader=-1)
    there.unfence(2)
    expect(there, isr=[2], leader=2, recovery="RECOVERING")


def test_deviation_155_a_cancel_under_min_isr_does_not_give_up_eligible_replicas() -> None:
    there = world(elr=True, **{"min.insync.replicas": "2"})
    move(there, [1, 4, 5])
    there.alter_partition({"topic": "foo", "p": 0, "from": 1, "isr": [1, 4]})
    expect(there, isr=[1, 4], elr=[])  # records are committed that 2 and 3 do not have
    move(there, None, expect_error="INVALID_REPLICA_ASSIGNMENT")
    there.fence(4)
    expect(there, isr=[1], elr=[4])
    move(there, None, expect_error="INVALID_REPLICA_ASSIGNMENT")
    there.alter_partition({"topic": "foo", "p": 0, "from": 1, "isr": [1, 2]})
    move(there, None)
    expect(there, replicas=[1, 2, 3], isr=[1, 2], elr=[])


def test_deviation_155_a_cancel_that_gives_up_nobody_is_always_possible() -> None:
    there = world(elr=True, **{"min.insync.replicas": "2"})
    move(there, [1, 2, 6])
    there.fence(3)
    there.fence(2)
    expect(there, isr=[1], elr=[2])
    move(there, None)
    expect(there, replicas=[1, 2, 3], isr=[1], elr=[2], adding=[])


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        ([], "INVALID_REPLICA_ASSIGNMENT"),
        ([1, 9], "INVALID_REPLICA_ASSIGNMENT"),
        ([1, 1], "INVALID_REPLICA_ASSIGNMENT"),
        ([1, 2, 6], "NONE"),  # 6 is fenced: that will do
    ],
)
def test_rule_107_validation(replicas: list[int], error: str) -> None:
    move(world(), replicas, expect_error=error)


def test_rule_107_the_factor_is_compared_with_what_the_partition_is_to_have() -> None:
    there = world()
    move(there, [1, 2], allow_rf_change=False, expect_error="INVALID_REPLICATION_FACTOR")
    move(there, [1, 2, 4], allow_rf_change=False)
    expect(there, replicas=[1, 2, 4, 3])
    move(there, [1, 2, 5], allow_rf_change=False)
    move(there, None, allow_rf_change=False)


def test_unknown_and_repeated_partitions_are_reported_one_by_one() -> None:
    there = world()
    good = ReassignablePartition(partition_index=0, replicas=(4, 2, 3))
    request = AlterPartitionReassignmentsRequest(
        topics=(
            ReassignableTopic(name="foo", partitions=(good, good, ReassignablePartition(partition_index=1))),
            ReassignableTopic(name="bar", partitions=(good,)),
        )
    )
    decision = alter_partition_reassignments(there.image, request, there.settings)
    response: Any = decision.response
    assert [each.error_code for topic in response.responses for each in topic.partitions] == [0, 42, 3, 3]
    assert len(decision.records) == 1


def test_listing_shows_what_moves() -> None:
    there = world()

    def listed(topics: Any) -> list[tuple[str, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
        response = list_partition_reassignments(there.image, ListPartitionReassignmentsRequest(topics=topics))
        return [
            (topic.name, each.partition_index, each.replicas, each.adding_replicas, each.removing_replicas)
            for topic in response.topics
            for each in topic.partitions
        ]

    assert listed(None) == []
    move(there, [4, 2, 3])
    moving = [("foo", 0, (4, 2, 3, 1), (4,), (1,))]
    assert listed(None) == moving
    asked = ListPartitionReassignmentsTopics(name="foo", partition_indexes=(0, 7))
    assert listed((asked, ListPartitionReassignmentsTopics(name="nope", partition_indexes=(0,)))) == moving
    assert listed(()) == []
