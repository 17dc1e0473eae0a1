"""The ISR as its leader sees it: rules 9-23 and 108, a test for each."""

from __future__ import annotations

import pytest

from tanist.events.replication import BecameLeader, IsrChanged, IsrUpdateFailed
from tanist.lab.scenarios.replica import LAG_MS
from tanist.replica.leader import FollowerFetch
from tanist.replica.remote import NEVER_MS
from tanist.wire.errors import ErrorCode
from tests.replica.replica_alone import Alone, advances, proposals, state


def test_rule_9_one_proposal_in_flight() -> None:
    alone = Alone(isr=(1,), leo=10)
    proposal = alone.propose(2)
    assert alone.fetch(3, 10).effects == []
    alone.now_ms += LAG_MS + 1
    assert alone.leader.check_lag(alone.now_ms) == []
    alone.answer(proposal)
    assert alone.leader.pending is None
    assert [broker for broker, _ in alone.propose(3).isr] == [1, 2, 3]


def test_rule_10_expand_at_a_fetch_shrink_at_the_check() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 10)
    alone.append()
    alone.now_ms += LAG_MS + 1
    assert alone.append() == []
    assert alone.leader.pending is None  # nobody looked
    (proposal,) = proposals(alone.leader.check_lag(alone.now_ms))
    assert proposal.isr == ((1, 1001),)
    alone.answer(proposal)
    (proposal,) = proposals(alone.fetch(2, 12).effects)
    assert proposal.isr == ((1, 1001), (2, 1002))


def test_rule_11_not_before_the_high_watermark() -> None:
    alone = Alone(isr=(1, 2), leo=10, leader_epoch=5)
    alone.fetch(2, 10)
    alone.append(5)
    alone.fetch(2, 15)
    assert alone.high_watermark == 15
    assert proposals(alone.fetch(3, 14).effects) == []
    assert len(proposals(alone.fetch(3, 15).effects)) == 1


def test_rule_11_not_before_the_start_of_the_leader_epoch() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    assert (alone.high_watermark, alone.leader.leader_epoch_start_offset) == (0, 10)
    assert proposals(alone.fetch(3, 9).effects) == []
    assert len(proposals(alone.fetch(3, 10).effects)) == 1


def test_rule_163_not_before_it_begins_at_the_log_start_at_which_it_ends() -> None:
    """Its records may be others than those that are deleted here; no epoch shows it."""
    alone = Alone(isr=(1, 2), leo=10, leader_epoch=5)
    alone.fetch(2, 10)
    alone.log.advance_log_start_offset(10)
    assert proposals(alone.fetch(3, 10, log_start=4).effects) == []
    assert len(proposals(alone.fetch(3, 10, log_start=10).effects)) == 1


def test_rule_163_one_that_ends_above_the_log_start_may_begin_below_it() -> None:
    alone = Alone(isr=(1, 2), leo=10, leader_epoch=5)
    alone.fetch(2, 10)
    alone.log.advance_log_start_offset(9)
    assert len(proposals(alone.fetch(3, 10, log_start=4).effects)) == 1


def test_rule_12_a_member_is_late_after_the_lag_time_and_not_at_it() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.append()
    alone.now_ms += LAG_MS
    assert alone.leader.check_lag(alone.now_ms) == []
    alone.now_ms += 1
    (proposal,) = proposals(alone.leader.check_lag(alone.now_ms))
    assert [broker for broker, _ in proposal.isr] == [1]


def test_rule_12_at_the_leaders_end_it_is_never_late() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 10)
    alone.now_ms += 100 * LAG_MS
    assert alone.leader.check_lag(alone.now_ms) == []


def test_rule_12_the_leader_itself_never_is() -> None:
    alone = Alone(replicas=(1,), leo=10)
    alone.now_ms += 100 * LAG_MS
    assert alone.leader.check_lag(alone.now_ms) == []


def test_rule_12_a_member_that_is_no_replica_is_late_at_once() -> None:
    alone = Alone(replicas=(1, 2), isr=(1, 2, 4))
    (proposal,) = proposals(alone.leader.check_lag(alone.now_ms))
    assert [broker for broker, _ in proposal.isr] == [1, 2]


def test_rule_13_when_a_follower_was_last_caught_up() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    remote = alone.leader.remotes[2]
    begin = alone.now_ms
    alone.now_ms += 100
    alone.fetch(2, 5)  # behind: unchanged
    assert remote.last_caught_up_ms == begin
    first_fetch = alone.now_ms
    alone.append(5)
    alone.now_ms += 100
    alone.fetch(2, 10)  # the end as of the fetch before: caught up then
    assert remote.last_caught_up_ms == first_fetch
    alone.now_ms += 100
    alone.fetch(2, 15)  # the end: caught up now
    assert remote.last_caught_up_ms == alone.now_ms


def test_rule_14_a_new_leader_knows_nothing_of_its_followers() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    assert (alone.leader.remotes[2].log_end_offset, alone.leader.remotes[2].last_caught_up_ms) == (-1, alone.now_ms)
    assert (alone.leader.remotes[3].log_end_offset, alone.leader.remotes[3].last_caught_up_ms) == (-1, NEVER_MS)
    assert alone.leader.remotes[2].broker_epoch is None


def test_rule_14_re_elected_in_the_next_epoch_it_remembers_their_offsets() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 8)
    alone.fetch(3, 8)
    alone.now_ms += 500
    alone.learn(leader_epoch=6)
    two, three = alone.leader.remotes[2], alone.leader.remotes[3]
    assert (two.log_end_offset, two.last_caught_up_ms, two.broker_epoch) == (8, alone.now_ms, 1002)
    assert (three.log_end_offset, three.last_caught_up_ms) == (8, NEVER_MS)


def test_rule_14_if_others_may_have_led_in_between_it_does_not() -> None:
    """Where we differ from Apache, which remembers: see A13 in test_replica_mutations."""
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 8)
    alone.learn(leader_epoch=7)
    assert alone.leader.remotes[2].log_end_offset == -1


def test_rule_14_without_a_new_epoch_nothing_is_reset() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 8)
    before = alone.leader.remotes[2].snapshot()
    alone.now_ms += 500
    alone.learn(isr=(1, 2, 3))
    assert alone.leader.remotes[2].snapshot() == before


@pytest.mark.parametrize(
    ("changes", "joins"),
    [
        ({}, True),
        ({"fenced": True}, False),
        ({"shutting_down": True}, False),
        ({"epoch": 999}, False),  # the leader's metadata is behind: not the life it can vouch for
    ],
)
def test_rule_15_who_may_join(changes: dict[str, object], joins: bool) -> None:
    alone = Alone(isr=(1,), leo=10)
    alone.brokers.mark(2, **changes)
    assert bool(proposals(alone.fetch(2, 10).effects)) is joins


def test_rule_15_a_fetch_without_broker_epoch_is_not_checked_and_an_unknown_broker_never_joins() -> None:
    alone = Alone(isr=(1,), leo=10)
    (proposal,) = proposals(alone.fetch(2, 10, broker_epoch=-1).effects)
    assert proposal.isr == ((1, 1001), (2, -1))
    alone = Alone(isr=(1,), leo=10)
    del alone.brokers[2]
    assert proposals(alone.fetch(2, 10).effects) == []


def test_rule_16_a_fetch_of_a_former_life_is_refused_and_not_believed() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 5)
    before = alone.leader.remotes[2].snapshot()
    assert alone.fetch(2, 10, broker_epoch=1001).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert alone.leader.remotes[2].snapshot() == before
    alone.brokers.mark(2, epoch=2000)
    assert alone.fetch(2, 10).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert alone.fetch(2, 10, broker_epoch=2000).error == 0


def test_rule_16_also_while_the_metadata_has_yet_to_hear_of_the_new_life() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 0, broker_epoch=2000)
    assert alone.fetch(2, 10).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert alone.leader.remotes[2].log_end_offset == 0


def test_rule_17_a_proposal_vouches_for_each_member() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    proposal = alone.propose(3)
    assert proposal.isr == ((1, 1001), (2, -1), (3, 1003))  # 2 has not fetched yet
    assert (proposal.leader_epoch, proposal.partition_epoch) == (5, 10)
    alone = Alone(isr=(1, 2), leo=10)
    del alone.brokers[1]
    assert alone.propose(3).isr[0] == (1, -1)


@pytest.mark.parametrize("error", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA])
def test_rule_18_certainly_not_applied_goes_back(error: int) -> None:
    alone = Alone(isr=(1,), leo=10)
    assert alone.answer(alone.propose(2), error=error) == [IsrUpdateFailed("foo-0", error, rolled_back=True)]
    assert (alone.leader.pending, alone.leader.maximal_isr) == (None, {1})


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
def test_rule_18_overtaken_waits_for_metadata(error: int) -> None:
    alone = Alone(isr=(1,), leo=10)
    assert alone.answer(alone.propose(2), error=error) == [IsrUpdateFailed("foo-0", error, rolled_back=False)]
    assert alone.leader.maximal_isr == {1, 2}
    assert alone.fetch(3, 10).effects == []
    alone.learn(isr=(1,))
    assert (alone.leader.pending, alone.leader.maximal_isr) == (None, {1})


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NOT_CONTROLLER, 999])
def test_rule_18_anything_else_is_sent_again(error: int) -> None:
    alone = Alone(isr=(1,), leo=10)
    proposal = alone.propose(2)
    failed, again = alone.answer(proposal, error=error)
    assert (failed, again) == (IsrUpdateFailed("foo-0", error, rolled_back=False), proposal)
    assert alone.leader.maximal_isr == {1, 2}


def test_rule_19_a_success_of_another_epoch_or_an_older_state_is_ignored() -> None:
    for stale in ({"leader_epoch": 4}, {"leader_epoch": 6}, {"partition_epoch": 9}):
        alone = Alone(isr=(1,), leo=10)
        assert alone.answer(alone.propose(2), **stale) == []
        assert alone.leader.maximal_isr == {1, 2}


@pytest.mark.parametrize("partition_epoch", [10, 11])
def test_rule_19_a_success_commits_also_with_an_equal_epoch(partition_epoch: int) -> None:
    alone = Alone(isr=(1,), leo=10, min_isr=2)
    effects = alone.answer(alone.propose(2), partition_epoch=partition_epoch)
    assert effects[0] == IsrChanged("foo-0", (1, 2), (2,), ())
    assert advances(effects) == [10]
    assert (alone.leader.pending, alone.leader.isr, alone.partition.partition_epoch) == (None, (1, 2), partition_epoch)


def test_rule_20_the_answer_to_a_replaced_proposal_is_ignored() -> None:
    alone = Alone(isr=(1,), leo=10)
    proposal = alone.propose(2)
    alone.learn(isr=(1, 2))
    second = alone.propose(3)
    assert alone.answer(proposal, partition_epoch=11) == []
    assert alone.answer(proposal, error=ErrorCode.INELIGIBLE_REPLICA) == []
    assert alone.leader.pending is not None
    assert alone.leader.pending.proposal == second


def test_rule_20_metadata_that_says_nothing_new_replaces_nothing() -> None:
    alone = Alone(isr=(1,), leo=10)
    alone.propose(2)
    alone.learn(partition_epoch=10)
    assert alone.leader.maximal_isr == {1, 2}


def test_rule_21_without_an_answer_the_same_proposal_goes_out_after_50_ms() -> None:
    alone = Alone(isr=(1,), leo=10)
    proposal = alone.propose(2)
    (again,) = proposals(alone.partition.alter_partition_failed(proposal, alone.now_ms))
    assert (again, again.delay_ms, proposal.delay_ms) == (proposal, 50, 0)
    assert alone.leader.maximal_isr == {1, 2}  # it may have been applied
    alone.learn(isr=(1,))
    assert alone.partition.alter_partition_failed(proposal, alone.now_ms) == []


def test_rule_22_older_metadata_is_ignored_equal_is_accepted() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    assert alone.learn(partition_epoch=9, isr=(1,)) == []
    assert alone.leader.isr == (1, 2)
    alone.learn(partition_epoch=10, isr=(1,))
    assert alone.leader.isr == (1,)


def test_rule_22_the_epoch_start_is_recorded_when_the_epoch_grew_even_without_records() -> None:
    alone = Alone(leo=10)
    assert alone.effects[0] == BecameLeader("foo-0", 5, 10)
    assert alone.log.epochs.entries == ((4, 0), (5, 10))
    alone.append(3)
    alone.learn(isr=(1,))
    assert alone.leader.leader_epoch_start_offset == 10
    assert alone.learn(leader_epoch=6)[0] == BecameLeader("foo-0", 6, 13)
    assert alone.log.epochs.entries == ((4, 0), (5, 10), (6, 13))


def test_rule_23_recovery_is_over_with_the_next_proposal() -> None:
    alone = Alone(isr=(1,), leo=10)
    alone.learn(leader_epoch=6, recovering=True)
    proposal = alone.propose(2)
    assert proposal.recovering is False


def test_rule_108_a_replica_the_leader_has_not_heard_of() -> None:
    alone = Alone(leo=10)
    assert alone.fetch(9, 10).error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert alone.fetch(9, 10, leader_epoch=-1).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert alone.fetch(1, 10).error == ErrorCode.UNKNOWN_LEADER_EPOCH  # the leader itself is no follower


def test_kip_320_a_fetch_of_another_leader_epoch_changes_nothing() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 5)
    before = state(alone.leader)
    assert alone.fetch(2, 10, leader_epoch=4).error == ErrorCode.FENCED_LEADER_EPOCH
    assert alone.fetch(2, 10, leader_epoch=6).error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert state(alone.leader) == before


def test_a_removed_replica_is_forgotten() -> None:
    alone = Alone(isr=(1, 2, 3), leo=10)
    alone.fetch(3, 10)
    alone.learn(replicas=(1, 2), isr=(1, 2))
    alone.learn(replicas=(1, 2, 3))
    assert alone.leader.remotes[3].log_end_offset == -1


def test_isr_changes_by_the_controller_are_reported_too() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    assert IsrChanged("foo-0", (1,), (), (2,)) in alone.learn(isr=(1,))


def test_check_fetch_changes_nothing() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    before = state(alone.leader)
    assert alone.leader.check_fetch(FollowerFetch(2, 1002, 10, -1, 5, 0)) == (0, None)
    assert state(alone.leader) == before
