"""One partition's change where two rules meet.

Effective min ISR (rule 3) shows in reassignments: an ELR cannot tell, for an ISR of all replicas leaves nobody outside.
So does the order of the steps (rule 39).
"""

from __future__ import annotations

from typing import Any

from tests.controller.world import World


def world(min_isr: str, replicas: list[int]) -> World:
    return World(
        {
            "cluster": {"brokers": [1, 2, 3, 4], "unfenced": [1, 2, 3, 4], "elr": True},
            "topics": {"foo": {"assignments": [replicas], "config": {"min.insync.replicas": min_isr}}},
        }
    )


def expect(there: World, **fields: Any) -> None:
    there.expect({"foo-0": fields})


def test_rule_3_a_minimum_above_the_number_of_replicas_holds_up_no_reassignment() -> None:
    there = world("5", [1, 2])
    there.reassign({"topic": "foo", "p": 0, "replicas": [3, 4]})
    expect(there, replicas=[3, 4, 1, 2])
    there.alter_partition({"topic": "foo", "p": 0, "from": 1, "isr": [1, 2, 3]})
    expect(there, replicas=[3, 4, 1, 2], adding=[3, 4])  # 155: of those who stay, one is too few
    there.alter_partition(
        {"topic": "foo", "p": 0, "from": 1, "isr": [1, 2, 3, 4], "expect_error": "NEW_LEADER_ELECTED"}
    )
    expect(there, replicas=[3, 4], isr=[3, 4], adding=[], removing=[])


def test_rule_3_replicas_that_are_being_added_count() -> None:
    """Three in sync are enough for the topic's three replicas, and too few while a fourth is on its way."""
    there = world("4", [1, 2, 3])
    there.reassign({"topic": "foo", "p": 0, "replicas": [1, 2, 3, 4]})
    there.fence(3)
    expect(there, isr=[1, 2], elr=[3])
    there.alter_partition({"topic": "foo", "p": 0, "from": 1, "isr": [1, 2, 4]})
    expect(there, isr=[1, 2, 4], elr=[3], adding=[4])


def test_rule_39_who_is_eligible_is_decided_after_the_reassignment_has_ended() -> None:
    """Before its end 3 and 4 are too few for a minimum of three, and 1 and 2 would stay eligible; after it, enough."""
    there = world("3", [1, 2])
    there.reassign({"topic": "foo", "p": 0, "replicas": [3, 4]})
    there.alter_partition({"topic": "foo", "p": 0, "from": 1, "isr": [1, 2, 3]})
    there.fence(2)
    there.fence(1)
    expect(there, leader=3, isr=[3], elr=[1, 2], replicas=[3, 4, 1, 2])
    there.alter_partition({"topic": "foo", "p": 0, "from": 3, "isr": [3, 4]})
    expect(there, leader=3, isr=[3, 4], elr=[], replicas=[3, 4], removing=[])


def test_rule_60_an_elr_that_was_stored_stays_until_its_partitions_next_change() -> None:
    there = world("3", [1, 2, 3])
    there.fence(2)
    expect(there, isr=[1, 3], elr=[2])
    there.feature({"name": "eligible.leader.replicas.version", "level": 0, "upgrade_type": "SAFE_DOWNGRADE"})
    expect(there, isr=[1, 3], elr=[2], partition_epoch=1)
    there.fence(3)
    expect(there, isr=[1], elr=[])
