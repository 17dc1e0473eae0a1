"""Each rule that safety.md wants to be breakable: a course of events that is harmless with it and harmful without.

Every scenario is played twice: by the real replicas, which must come through, and by replicas that lack the one rule,
which must be found out, and for the right reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tanist.replica.effects import ProposeIsr
from tanist.replica.memory import Entry, MemoryLog
from tanist.replica.metadata import PartitionMetadata
from tanist.replica.reads import READ_UNCOMMITTED, list_offsets
from tests.replica.replica_controller import AbstractController, Violation
from tests.replica.replica_mutants import MUTANTS
from tests.replica.replica_stage import FetchInFlight, ProposalInFlight, Stage

Play = Callable[[Stage], None]


def without_three(stage: Stage) -> None:
    """ISR {1, 2}, leader 1; broker 3 is unfenced and out of the ISR."""
    stage.controller.fence(3)
    stage.learn_all()
    stage.controller.unfence(3)
    stage.learn_all()
    stage.check()


def a1_fence_the_other(stage: Stage) -> None:
    without_three(stage)
    stage.append(1)
    stage.controller.fence(2)
    stage.learn(1)
    stage.check()


def a8_commit_while_three_joins(stage: Stage) -> None:
    without_three(stage)
    stage.fetch(3)
    stage.deliver(next(m for m in stage.messages if isinstance(m, ProposalInFlight)))
    stage.append(1)
    stage.fetch(2)
    stage.fetch(2)
    stage.check()


def a9_commit_while_three_leaves(stage: Stage) -> None:
    stage.fetch(2)
    stage.fetch(3)
    stage.now_ms += 30_001
    stage.append(1)
    stage.fetch(2)
    stage.check_lag(1)
    stage.fetch(2)
    stage.check()


def a10_answer_lost(stage: Stage) -> None:
    without_three(stage)
    stage.fetch(3)
    answer = stage.deliver(next(m for m in stage.messages if isinstance(m, ProposalInFlight)))
    assert answer is not None
    stage.drop(answer)
    stage.append(1)
    stage.fetch(2)
    stage.fetch(2)
    stage.check()


def a11_three_is_behind(stage: Stage) -> None:
    without_three(stage)
    stage.append(1, 2)
    stage.fetch(2)
    stage.fetch(2)
    assert stage.replica(1).high_watermark == 2
    stage.ask(3)
    stage.settle_proposals()
    stage.check()


def a12_stale_high_watermark(stage: Stage) -> None:
    """Needs a single fencing and no loss of data: only KIP-966 lets a leader with ISR < min ISR add a replica."""
    without_three(stage)
    stage.append(1)
    stage.fetch(2)
    stage.ask(2)
    assert (stage.replica(1).high_watermark, stage.replica(2).high_watermark) == (1, 0)
    stage.controller.fence(1)
    stage.learn_all()
    assert stage.leader_state(2).isr == (2,)
    stage.ask(3)
    stage.settle_proposals()
    stage.check()


def a13_there_and_back_in_one_batch(stage: Stage) -> None:
    """1 -> 2 -> 1; broker 1 hears of both elections at once, and 3 has truncated in between."""
    stage.append(1, 2)
    stage.fetch(3)
    stage.fetch(3)
    stage.controller.prefer(2)
    stage.learn(2)
    stage.learn(3)
    stage.fetch(3)
    assert stage.log(3).log_end_offset == 0
    stage.controller.prefer(1)
    stage.learn(1)
    stage.learn(2)
    for _ in range(3):  # drop the empty epoch 1, get the records, confirm them
        stage.fetch(2)
    assert stage.leader_state(1).remotes[2].log_end_offset == 2
    stage.check()


def a17_append(stage: Stage) -> None:
    stage.append(1, acks=-1)
    stage.check()


def a18_sent_is_not_received(stage: Stage) -> None:
    stage.append(1)
    for follower in (2, 3):
        stage.ask(follower)
    stage.check()


def a19_enough_but_not_all(stage: Stage) -> None:
    stage.append(1)
    stage.fetch(3)
    stage.fetch(3)
    stage.check()


def a22_fetch_from_the_last_reign(stage: Stage) -> None:
    stage.append(1)
    stage.fetch(3)
    late = stage.send_fetch(3)
    assert late is not None
    stage.controller.prefer(2)
    stage.learn_all()
    stage.fetch(3)
    assert stage.log(3).log_end_offset == 0
    stage.controller.prefer(1)
    stage.learn_all()
    stage.deliver(late)
    stage.fetch(2)
    stage.fetch(2)
    stage.check()


def a23_answer_to_an_old_question(stage: Stage) -> None:
    """3 asks twice, gets two orders to truncate, and has the leader's records by when the second answer arrives."""
    stage.append(1)
    stage.fetch(3)
    stage.controller.prefer(2)
    stage.learn_all()
    stage.append(2, 2)
    first, second = stage.send_fetch(3), stage.send_fetch(3)
    assert first is not None
    assert second is not None
    late = stage.deliver(second)
    again = stage.deliver(first)
    assert late is not None
    assert again is not None
    stage.deliver(again)
    stage.fetch(3)
    stage.fetch(1)
    stage.fetch(1)
    stage.fetch(1)
    stage.fetch(3)
    assert stage.replica(2).high_watermark == 2
    stage.deliver(late)
    stage.check()


def a24_same_length_other_records(stage: Stage) -> None:
    stage.append(1, ["x"])
    stage.controller.fence(1)
    stage.learn(2)
    stage.learn(3)
    stage.append(2, ["y"])
    stage.fetch(3)
    stage.fetch(3)
    assert [entry.value for entry in stage.committed] == ["y"]
    stage.controller.unfence(1)
    stage.learn_all()
    stage.fetch(1)
    stage.check()
    stage.fetch(1)
    stage.settle_proposals()
    stage.check()


def a25_restart_above_stale_high_watermark(stage: Stage) -> None:
    """KIP-101's first scenario: 2 has the record, does not know that it is committed, and restarts."""
    without_three(stage)
    stage.append(1)
    stage.fetch(2)
    stage.ask(2)
    assert len(stage.committed) == 1
    stage.restart(2)
    stage.learn_all()
    stage.controller.unfence(2)
    stage.learn_all()
    stage.controller.fence(1)
    stage.check()


def a26_two_fast_elections(stage: Stage) -> None:
    """KIP-279: the follower has an epoch, 3, that the leader has never heard of, in the middle of the log."""
    follower, leader = stage.brokers[2], stage.brokers[1]
    common = [Entry(at, 0, f"c{at}") for at in range(5)]
    follower.log.append_as_follower(tuple(common + [Entry(at, 3, "mine") for at in range(5, 8)]), 9)
    leader.log.append_as_follower(tuple(common + [Entry(at, 2, "theirs") for at in range(5, 10)]), 9)
    for _ in range(4):
        stage.controller.prefer(2)
        stage.controller.prefer(1)
    stage.learn_all()
    for _ in range(4):
        stage.fetch(2)
    if follower.log.entries != leader.log.entries:
        raise Violation("L7", f"2 still has {follower.log.entries}")


def a33_one_replica(stage: Stage) -> None:
    stage.append(1)
    if stage.replica(1).high_watermark != 1:
        raise Violation("L5", "one replica of one, and nothing is ever committed")


def a34_latest_of_a_new_leader(stage: Stage) -> None:
    stage.append(1)
    stage.fetch(2)
    stage.fetch(3)
    stage.ask(2)
    stage.ask(3)

    def latest(broker: int) -> int:
        replica, log = stage.replica(broker), stage.log(broker)
        end = log.log_end_offset
        answer = list_offsets(replica, log, timestamp=-1, isolation_level=READ_UNCOMMITTED, last_stable_offset=end)
        return -1 if answer.error else answer.offset

    seen = latest(1)
    assert seen == 1
    stage.controller.fence(1)
    stage.learn_all()
    if 0 <= latest(2) < seen:
        raise Violation("S19", f"the end of the partition went back from {seen} to {latest(2)}")


def a35_checkpoint_ahead_of_log(stage: Stage) -> None:
    stage.append(1, 3)
    for _ in range(2):
        stage.fetch(2)
        stage.fetch(3)
    stage.fetch(2)
    assert stage.replica(2).high_watermark == 3
    stage.restart(2, keep=1)
    stage.check()


def a45_high_watermark_ahead_of_log(stage: Stage) -> None:
    without_three(stage)
    stage.append(1, 3)
    stage.fetch(2)
    stage.fetch(2)
    stage.fetch_max_entries = 1
    stage.fetch(3)
    stage.check()


def a47_late_success(stage: Stage) -> None:
    """The answer that 3 has joined arrives after metadata said so, and while the proposal to add 4 is under way."""
    stage.controller.fence(3)
    stage.controller.fence(4)
    stage.learn_all()
    stage.controller.unfence(3)
    stage.controller.unfence(4)
    stage.learn_all()
    stage.fetch(3)
    late = stage.deliver(next(m for m in stage.messages if isinstance(m, ProposalInFlight)))
    assert late is not None
    stage.learn_all()
    stage.fetch(4)
    second = next(m for m in stage.messages if isinstance(m, ProposalInFlight))
    stage.deliver(late)
    stage.deliver(second)
    stage.check()


SCENARIOS: dict[str, tuple[Play, set[str], dict[str, Any]]] = {
    "A1": (a1_fence_the_other, {"S4"}, {}),
    "A8": (a8_commit_while_three_joins, {"S2", "S3"}, {}),
    "A9": (a9_commit_while_three_leaves, {"S2", "S3"}, {}),
    "A10": (a10_answer_lost, {"S2", "S3"}, {}),
    "A11": (a11_three_is_behind, {"S14"}, {}),
    "A12": (a12_stale_high_watermark, {"S14"}, {}),
    "A13": (a13_there_and_back_in_one_batch, {"S4"}, {}),
    "A17": (a17_append, {"S4"}, {}),
    "A18": (a18_sent_is_not_received, {"S4"}, {}),
    "A19": (a19_enough_but_not_all, {"S4"}, {}),
    "A22": (a22_fetch_from_the_last_reign, {"S11"}, {}),
    "A23": (a23_answer_to_an_old_question, {"S21"}, {}),
    "A24": (a24_same_length_other_records, {"S18", "S6"}, {}),
    "A25": (a25_restart_above_stale_high_watermark, {"S2"}, {}),
    "A26": (a26_two_fast_elections, {"L7"}, {}),
    "A33": (a33_one_replica, {"L5"}, {"brokers": 1}),
    "A34": (a34_latest_of_a_new_leader, {"S19"}, {}),
    "A35": (a35_checkpoint_ahead_of_log, {"S18"}, {}),
    "A45": (a45_high_watermark_ahead_of_log, {"S18"}, {}),
    "A47": (a47_late_success, {"S3"}, {"brokers": 4}),
}


@pytest.mark.parametrize("mutation", SCENARIOS)
def test_real_rules_come_through(mutation: str) -> None:
    play, _, stage = SCENARIOS[mutation]
    play(Stage(**stage))


@pytest.mark.parametrize("mutation", SCENARIOS)
def test_broken_rule_is_found_out(mutation: str) -> None:
    play, expected, stage = SCENARIOS[mutation]
    with pytest.raises(Violation) as caught:
        play(Stage(**stage, partition_class=MUTANTS[mutation]))
    assert caught.value.name in expected, caught.value


class AcceptsOldProposals(AbstractController):
    """A7: the partition epoch in a proposal is what the leader has it for."""

    def _is_overtaken(self, proposal: ProposeIsr, now: PartitionMetadata) -> bool:
        return False


class CarelessStage(Stage):
    controller_class = AcceptsOldProposals


def a7_proposal_lands_late(stage: Stage) -> None:
    """1 proposes {1, 2}; before that arrives 2 is fenced, and 1 hears that the ISR is {1, 3} and counts with that."""
    stage.append(1)
    stage.now_ms += 30_001
    stage.fetch(2)
    stage.fetch(2)
    stage.check_lag(1)
    late = next(m for m in stage.messages if isinstance(m, ProposalInFlight))
    stage.controller.fence(2)
    stage.learn_all()
    stage.controller.unfence(2)
    stage.learn_all()
    stage.deliver(late)
    stage.check()


def test_a7_proposals_carry_the_epoch_that_dates_them() -> None:
    a7_proposal_lands_late(Stage())
    with pytest.raises(Violation) as caught:
        a7_proposal_lands_late(CarelessStage())
    assert caught.value.name == "S3"


def test_every_mutant_has_its_scenario() -> None:
    assert set(MUTANTS) == set(SCENARIOS)


def test_stage_holds_messages_until_reported() -> None:
    stage = Stage()
    stage.append(1)
    sent = stage.send_fetch(2)
    assert isinstance(sent, FetchInFlight)
    assert stage.log(2) is not stage.log(1)
    assert stage.log(2).log_end_offset == 0
    assert isinstance(stage.log(2), MemoryLog)
