"""Broken rules of groups are noticed here: each by the test that is there for the rule, which fails with it broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tanist.lab.mutations.rules_of_groups import GROUP_MUTANTS
from tanist.lab.mutations.simulator import applied
from tests.coordinator import test_consumer_group as consumer
from tests.coordinator import test_coordinator_group as classic
from tests.coordinator import test_coordinator_offsets as offsets
from tests.coordinator.group_rig import Rig


def rig() -> Rig:
    rig = Rig()
    rig.topics.create("t", 6)
    return rig


NOTICED_BY: dict[str, Callable[[], None]] = {
    "G1": offsets.test_an_offset_is_reported_once_it_is_committed_with_its_epoch_and_metadata,
    "G2": offsets.test_an_offset_is_reported_once_it_is_committed_with_its_epoch_and_metadata,
    "G3": offsets.test_members_commit_in_their_generation_and_nobody_else_while_there_are_members,
    "G3b": lambda: consumer.test_a_member_commits_in_its_epoch_or_what_it_has_had_since_an_older_one(rig()),
    "G6": classic.test_nobody_is_reported_an_assignment_before_it_is_stored,
    "G6b": consumer.test_nothing_is_reported_before_it_is_committed_nor_what_rests_on_it,
    "G7": lambda: consumer.test_a_partition_is_given_on_only_when_its_owner_has_given_it_up(rig()),
    "G8": lambda: consumer.test_what_the_log_refuses_was_never_decided(rig()),
    "G9": classic.test_who_is_not_heard_of_is_out_and_the_others_rebalance,
    "G9b": lambda: consumer.test_who_is_silent_for_a_session_is_removed(rig()),
    "G12": lambda: consumer.test_a_group_that_has_gone_over_is_one_group_for_the_next_coordinator(rig()),
    "G10": lambda: consumer.test_new_topics_and_partitions_are_assigned_with_the_next_heartbeats(rig()),
}
IN_A_NODE = {"G4", "G5", "G11", "G13"}
"""Rules of a group's broker: `tests/broker/test_node_groups.py` and `test_leadership.py` notice them."""


def test_each_rule_has_a_test() -> None:
    assert NOTICED_BY.keys() | IN_A_NODE == GROUP_MUTANTS.keys()


@pytest.mark.parametrize("name", NOTICED_BY)
def test_a_broken_rule_is_noticed(name: str) -> None:
    NOTICED_BY[name]()  # holds as things are
    with applied(GROUP_MUTANTS[name]), pytest.raises((AssertionError, KeyError)):
        NOTICED_BY[name]()
