"""The high watermark of a leader, and produce: rules 1-8 and 118-120, a test for each."""

from __future__ import annotations

from uuid import UUID

import pytest

from tanist.lab.scenarios.replica import LAG_MS
from tanist.replica.effects import FetchAgain, HighWatermarkAdvanced, HighWatermarkSet
from tanist.replica.follower import FetchedPartition
from tanist.replica.memory import Entry
from tanist.wire.errors import ErrorCode
from tests.replica.replica_alone import Alone, advances, proposals


def test_rule_1_high_watermark_stays_while_isr_is_below_min_isr() -> None:
    alone = Alone(isr=(1, 2), min_isr=3, leo=10)
    alone.fetch(2, 10)
    assert alone.leader.under_min_isr
    alone.append(5)
    alone.fetch(2, 15)
    assert alone.high_watermark == 0


@pytest.mark.parametrize("acks", [0, 1])
def test_rule_1_whatever_acks_the_producer_uses(acks: int) -> None:
    alone = Alone(isr=(1,), min_isr=2)
    assert alone.leader.check_before_append(acks) == 0
    assert alone.append() == []
    assert alone.high_watermark == 0


def test_rule_1_counts_the_committed_isr_not_the_maximal() -> None:
    alone = Alone(isr=(1,), min_isr=2, leo=10)
    proposal = alone.propose(2)
    assert alone.leader.maximal_isr == {1, 2}
    assert alone.high_watermark == 0
    effects = alone.answer(proposal)
    assert advances(effects) == [10]


def test_rule_2_min_isr_is_at_most_the_number_of_replicas() -> None:
    alone = Alone(replicas=(1,), min_isr=3)
    assert alone.leader.effective_min_isr == 1
    assert alone.append() == [HighWatermarkAdvanced(1)]


def test_rule_3_replicas_being_added_count_as_replicas() -> None:
    alone = Alone(replicas=(1, 2), isr=(1, 2), min_isr=3)
    assert alone.leader.effective_min_isr == 2
    alone.brokers.update(Alone(replicas=(3,)).brokers)
    alone.learn(replicas=(1, 2, 3), adding=(3,))
    assert alone.leader.effective_min_isr == 3
    assert alone.leader.under_min_isr


def test_rule_4_the_slowest_member_decides() -> None:
    alone = Alone(leo=10)
    alone.fetch(2, 7)
    assert alone.high_watermark == 0  # nothing is known of 3 yet
    assert advances(alone.fetch(3, 4).effects) == [4]
    assert advances(alone.fetch(3, 9).effects) == [7]


def test_rule_4_one_that_keeps_up_holds_the_high_watermark_back_before_it_joins() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    proposal = alone.propose(3)
    alone.answer(proposal, error=ErrorCode.INELIGIBLE_REPLICA)
    assert 3 not in alone.leader.maximal_isr
    alone.append(5)
    alone.fetch(2, 15)
    assert alone.high_watermark == 10
    alone.now_ms += LAG_MS + 1  # 3 has fallen too far behind to be waited for
    alone.fetch(2, 15)
    alone.append(1)
    assert advances(alone.fetch(2, 16).effects) == [16]


def test_rule_4_one_that_may_not_join_is_not_waited_for() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.brokers.mark(3, fenced=True)
    alone.fetch(3, 10)
    alone.append(5)
    assert advances(alone.fetch(2, 15).effects) == [15]


def test_rule_4_one_in_a_failed_directory_is_not_waited_for() -> None:
    """The broker is alive, and the controller has taken its replica out of the ISR."""
    directories = (UUID(int=1001), UUID(int=1002), UUID(int=1003))
    alone = Alone(isr=(1, 2, 3), leo=10)
    alone.brokers.mark(3, directories=(UUID(int=1003), UUID(int=2003)))
    for broker in (2, 3):
        alone.fetch(broker, 10)
    alone.append(5)
    assert alone.fetch(2, 15).effects == []
    alone.brokers.mark(3, directories=(UUID(int=2003),))
    effects = alone.learn(isr=(1, 2), directories=directories)
    assert advances(effects) == [15]

    # Back in a directory that works, it may join.
    alone.learn(directories=(*directories[:2], UUID(int=2003)))
    assert [member for member, _ in proposals(alone.fetch(3, 15).effects)[0].isr] == [1, 2, 3]


@pytest.mark.parametrize("directory", [None, UUID(int=0), UUID(int=2)])
def test_rule_4_a_directory_that_is_not_known_has_not_failed(directory: UUID | None) -> None:
    """Of a replica that has not been assigned yet, or lies in a cluster of before KIP-858."""
    alone = Alone(isr=(1, 2), leo=10)
    alone.brokers.mark(3, directories=(UUID(int=2003),))
    if directory is not None:
        alone.learn(directories=(directory,) * 3)
    alone.fetch(2, 10)
    assert [member for member, _ in proposals(alone.fetch(3, 10).effects)[0].isr] == [1, 2, 3]


def test_rule_4_the_wait_ends_with_the_lag_check_or_the_fence() -> None:
    for end in ("lag", "fence"):
        alone = Alone(isr=(1,), leo=10)
        alone.answer(alone.propose(3), error=ErrorCode.INELIGIBLE_REPLICA)
        alone.append(5)
        assert alone.high_watermark == 10
        if end == "lag":
            alone.now_ms += LAG_MS + 1
            effects = alone.leader.check_lag(alone.now_ms)
        else:
            alone.brokers.mark(3, fenced=True)
            assert alone.leader.brokers_changed({1}, alone.now_ms) == []
            effects = alone.leader.brokers_changed({3}, alone.now_ms)
        assert advances(effects) == [15]


def test_rule_5_maximal_isr_of_an_expand_and_of_a_shrink() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 10)
    proposal = alone.propose(3)
    assert (alone.leader.isr, alone.leader.maximal_isr) == ((1, 2), {1, 2, 3})
    alone.answer(proposal)
    alone.now_ms += LAG_MS + 1
    alone.append()
    alone.leader.check_lag(alone.now_ms)
    assert (alone.leader.isr, alone.leader.maximal_isr) == ((1, 2, 3), {1, 2, 3})
    assert alone.leader.pending is not None
    assert alone.leader.pending.proposed == (1,)


def test_rule_6_what_moves_the_high_watermark() -> None:
    assert advances(Alone(isr=(1,), leo=3).effects) == [3]  # becoming leader
    alone = Alone(isr=(1,), leo=3)
    assert advances(alone.append()) == [4]  # an append
    alone = Alone(isr=(1, 2), leo=3)
    assert advances(alone.fetch(2, 3).effects) == [3]  # a follower's fetch
    alone = Alone(isr=(1,), min_isr=2, leo=3)
    assert advances(alone.answer(alone.propose(2))) == [3]  # an AlterPartition
    alone = Alone(isr=(1, 2), leo=3)
    assert advances(alone.learn(isr=(1,))) == [3]  # metadata


def test_rule_6_min_isr_alone_does_not() -> None:
    alone = Alone(isr=(1,), min_isr=2, leo=3)
    assert alone.leader.min_isr_changed(1) == []
    assert alone.high_watermark == 0
    assert not alone.leader.under_min_isr
    assert advances(alone.append()) == [4]
    alone.leader.min_isr_changed(2)
    assert alone.append() == []
    with pytest.raises(ValueError, match=r"min\.insync"):
        alone.leader.min_isr_changed(0)


def test_rule_6_a_leader_never_lowers_it() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 10)
    assert alone.fetch(2, 3).effects == []
    assert alone.high_watermark == 10
    assert alone.leader.remotes[2].log_end_offset == 3


def test_rule_7_a_follower_is_reported_and_may_go_back() -> None:
    alone = Alone(leader=2, leo=10, high_watermark=8)
    position = alone.follower.fetch_position()
    assert alone.follower.fetched(FetchedPartition(high_watermark=3, log_start_offset=0), position, 0) == [
        HighWatermarkSet(3)
    ]
    assert alone.high_watermark == 3


def test_rule_7_and_never_beyond_its_own_log() -> None:
    alone = Alone(leader=2, leo=10)
    alone.log.advance_log_start_offset(4)
    follower = alone.follower
    for reported, taken in ((99, 10), (2, 4)):
        answer = FetchedPartition(high_watermark=reported, log_start_offset=0)
        assert follower.fetched(answer, follower.fetch_position(), 0) == [HighWatermarkSet(taken)]


def test_rule_7_the_records_of_the_same_answer_count() -> None:
    alone = Alone(leader=2, leo=1)
    records = (Entry(1, 5, "a"), Entry(2, 5, "b"))
    answer = FetchedPartition(high_watermark=3, log_start_offset=0, records=records)
    assert alone.follower.fetched(answer, alone.follower.fetch_position(), 0) == [HighWatermarkSet(3)]


def test_rule_8_a_follower_learns_a_fetch_later() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    decision = alone.fetch(2, 10)
    assert (decision.high_watermark, advances(decision.effects)) == (0, [10])
    assert alone.fetch(2, 10).high_watermark == 10


def test_rule_118_acks_all_needs_min_isr_before_the_append() -> None:
    alone = Alone(isr=(1,), min_isr=2)
    assert alone.leader.check_before_append(-1) == ErrorCode.NOT_ENOUGH_REPLICAS
    alone.propose(2)  # pending: the maximal ISR does not count
    assert alone.leader.check_before_append(-1) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert alone.leader.check_before_append(0) == alone.leader.check_before_append(1) == 0


def test_rule_119_acks_all_is_done_at_the_high_watermark() -> None:
    alone = Alone(isr=(1, 2), min_isr=2)
    alone.append(3)
    assert alone.leader.acks_status(3) == (False, 0)
    alone.fetch(2, 2)
    assert alone.leader.acks_status(3) == (False, 0)
    assert alone.leader.acks_status(2) == (True, 0)
    alone.fetch(2, 3)
    assert alone.leader.acks_status(3) == (True, 0)


def test_rule_119_with_too_small_a_maximal_isr_the_record_is_there_and_the_ack_is_not() -> None:
    alone = Alone(isr=(1, 2), min_isr=2)
    alone.append(3)
    alone.fetch(2, 3)
    alone.learn(isr=(1,))
    assert alone.leader.acks_status(3) == (True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    alone.propose(2)  # the maximal ISR is enough
    assert alone.leader.acks_status(3) == (True, 0)


@pytest.mark.parametrize("acks", [-2, 2, 3, 127])
def test_rule_120_other_acks_are_invalid(acks: int) -> None:
    assert Alone().leader.check_before_append(acks) == ErrorCode.INVALID_REQUIRED_ACKS


@pytest.mark.parametrize(
    ("isr", "at_min", "under_min", "under_replicated"),
    [((1,), False, True, True), ((1, 2), True, False, True), ((1, 2, 3), False, False, False)],
)
def test_metrics_of_the_isr(isr: tuple[int, ...], at_min: bool, under_min: bool, under_replicated: bool) -> None:
    leader = Alone(isr=isr, min_isr=2).leader
    assert leader.in_sync_count == len(isr)
    assert (leader.at_min_isr, leader.under_min_isr, leader.under_replicated) == (at_min, under_min, under_replicated)


def test_low_watermark_waits_for_live_replicas_only() -> None:
    alone = Alone(leo=10)
    alone.fetch(2, 10, log_start=0)
    alone.fetch(3, 10, log_start=2)
    alone.log.advance_log_start_offset(5)
    assert alone.leader.low_watermark == 0
    alone.brokers.mark(2, fenced=True)
    assert alone.leader.low_watermark == 2
    alone.fetch(3, 10, log_start=7)
    assert alone.leader.low_watermark == 5


def test_fetch_effects_are_proposals_or_advances() -> None:
    alone = Alone(isr=(1,), leo=2)
    effects = alone.fetch(2, 2).effects
    assert len(proposals(effects)) == 1
    assert not [effect for effect in effects if isinstance(effect, FetchAgain)]
