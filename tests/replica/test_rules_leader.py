"""Facts of a leader in corners: 9 (late members while a proposal waits), 13 (falling behind), 113 (before the log)."""

from __future__ import annotations

from tanist.lab.scenarios.replica import LAG_MS
from tanist.wire.errors import ErrorCode
from tests.replica.replica_alone import Alone, proposals


def test_rule_9_nobody_is_dropped_while_a_proposal_waits() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    joining = alone.propose(3)
    alone.append()
    alone.now_ms += LAG_MS + 1  # 2 is late by now
    assert alone.leader.check_lag(alone.now_ms) == []
    assert alone.leader.pending is not None
    assert alone.leader.pending.proposal == joining
    alone.answer(joining, error=ErrorCode.INELIGIBLE_REPLICA)
    (dropping,) = proposals(alone.leader.check_lag(alone.now_ms))
    assert [broker for broker, _ in dropping.isr] == [1]
    # And the other way round: nobody joins while one is on its way out.
    assert proposals(alone.fetch(3, alone.log.log_end_offset).effects) == []
    assert alone.leader.pending.proposal == dropping


def test_rule_13_a_follower_that_falls_further_behind_was_caught_up_when_it_last_was() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    remote = alone.leader.remotes[2]
    alone.fetch(2, 10)
    caught_up_ms = alone.now_ms
    assert remote.last_caught_up_ms == caught_up_ms
    for _ in range(3):
        alone.append(5)
        alone.now_ms += 100
        alone.fetch(2, 10)  # its first such fetch reaches the end as of the fetch before: that is no news
        assert remote.last_caught_up_ms == caught_up_ms
    alone.now_ms += 100
    alone.fetch(2, 24)  # not yet what was the end at its last fetch
    assert remote.last_caught_up_ms == caught_up_ms
    alone.fetch(2, 25)
    assert remote.last_caught_up_ms == alone.now_ms


def test_rule_113_before_the_log_start_is_out_of_range_though_it_diverges_too() -> None:
    alone = Alone(leo=10, epochs=((4, 0), (6, 5)), leader_epoch=7)
    alone.log.advance_log_start_offset(3)
    assert alone.fetch(2, 4, last_epoch=5).diverging == (4, 5)
    before = alone.fetch(2, 2, last_epoch=5)
    assert (before.error, before.diverging) == (ErrorCode.OFFSET_OUT_OF_RANGE, None)


def test_kip_a_leader_does_not_notice_a_change_of_the_elr() -> None:
    """ "Both the follower and the leader don't have any new behavior to handle ELR": all it sees is another epoch."""
    alone = Alone(isr=(1, 2), min_isr=2, leo=10)
    alone.fetch(2, 10)
    assert alone.high_watermark == 10
    alone.now_ms += 500
    remote = alone.leader.remotes[2].snapshot()
    assert alone.learn() == []  # the partition epoch has grown, and nothing that a broker acts on has changed
    assert alone.leader.remotes[2].snapshot() == remote
    assert (alone.leader.leader_epoch, alone.high_watermark, alone.leader.maximal_isr) == (5, 10, {1, 2})
    assert alone.log.epochs.entries == ((4, 0), (5, 10))
