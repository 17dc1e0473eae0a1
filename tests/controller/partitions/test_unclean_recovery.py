"""The recovery manager by itself: who is asked, when it is enough, which answers count, whom it elects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tanist.client.admin import update_feature_request
from tanist.controller.image.partition_state import PartitionState
from tanist.controller.image.snapshot import from_records, to_records
from tanist.controller.partitions.log_info import LogInfo
from tanist.controller.partitions.recovery_strategy import Strategy, recovery_strategy
from tanist.controller.partitions.unclean_recovery import AskReplica, Phase
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tanist.wire.metadata import decode_record, encode_record, record_version
from tests.controller.controller_double import Cluster

IDLE_OFF = {"metadata.max.idle.interval.ms": "0"}
TIMEOUT_MS = 300_000
GRACE_MS = 5_000


class Rig:
    """Brokers 1 to 3, a topic on all of them, min ISR 2; all have left, and none of them cleanly."""

    def __init__(self, strategy: str = "Balanced", brokers: Iterable[int] = (1, 2, 3), **settings: Any) -> None:
        self.cluster = Cluster(
            static_configs=IDLE_OFF, auto_leader_rebalance_enable=False, broker_session_timeout_ms=10**9, **settings
        )
        self.brokers = tuple(brokers)
        self.lives = dict.fromkeys(self.brokers, 1)
        self.cluster.start(*self.brokers)
        self.cluster.create_topic("t", self.brokers, min_insync_replicas="2", **{"unclean.recovery.strategy": strategy})

    @property
    def state(self) -> PartitionState:
        return self.cluster.partition("t")

    @property
    def key(self) -> TopicIdPartition:
        return (self.cluster.image.topic_ids["t"], 0)

    def fence(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self.cluster.heartbeat(broker_id, want_fence=True)

    def unclean(self, *broker_ids: int, unfence: bool = True) -> None:
        """The brokers come back from a crash."""
        for broker_id in broker_ids:
            self.lives[broker_id] += 1
            if not self.cluster.image.brokers[broker_id].fenced:
                self.fence(broker_id)
            self.cluster.controller._heartbeats.end_session(broker_id)
            self.cluster.register(broker_id, self.lives[broker_id], previous_broker_epoch=-1)
            if unfence:
                self.cluster.heartbeat(broker_id)

    def asked(self) -> list[int]:
        """Whom the controller has asked since the last call, once it had the time to."""
        self.cluster.advance(0)
        questions, self.cluster.asked = self.cluster.asked, []
        return [question.broker_id for question in questions if self.key in question.partitions]

    def answer(self, broker_id: int, last_epoch: int, end_offset: int, **fields: Any) -> None:
        info: dict[str, Any] = {
            "broker_epoch": self.cluster.image.brokers[broker_id].epoch,
            "leader_epoch": self.state.leader_epoch,
            "last_epoch": last_epoch,
            "log_end_offset": end_offset,
            **fields,
        }
        self.cluster.controller.handle_replica_log_info(broker_id, {self.key: LogInfo(**info)}, self.cluster.now_ms)
        self.cluster.advance(0)

    def phase(self) -> Phase | None:
        self.cluster.advance(0)
        return self.cluster.controller.recoveries.phase_of(self.key)


def lost(strategy: str = "Balanced", **settings: Any) -> Rig:
    """3 left while there were enough; 2 and 1 left last, and both come back uncleanly: LastKnownElr is {1, 2}."""
    rig = Rig(strategy, **settings)
    rig.fence(3, 2, 1)
    assert (rig.state.isr, rig.state.elr) == ((), (1, 2))
    rig.unclean(1, 2, unfence=False)
    assert (rig.state.elr, rig.state.last_known_elr) == ((), (1, 2))
    return rig


# -- the trigger: the KIP's order


@pytest.mark.parametrize(
    ("strategy", "phase"),
    [
        ("Aggressive", Phase.COMPARING),
        ("Balanced", Phase.ELIGIBLE_AWAITED),
        ("None", Phase.ELIGIBLE_AWAITED),
    ],
)
def test_a_fenced_isr_from_before_elr_was_switched_on_counts_as_an_elr(strategy: str, phase: Phase) -> None:
    """Without ELR the last member stays in the ISR when it is fenced; with it, only its return or a recovery helps."""
    rig = Rig(strategy)
    for level in (0, 1):
        if level:
            rig.fence(3, 2, 1)
            assert (rig.state.leader, rig.state.isr, rig.state.elr) == (-1, (1,), ())
            rig.unclean(2, 3)
            assert rig.phase() is None
        change = update_feature_request("eligible.leader.replicas.version", level, 2 - level)
        assert rig.cluster.ask(change).error_code == ErrorCode.NONE
    assert (rig.state.leader, rig.state.isr, rig.phase()) == (-1, (1,), phase)
    rig.cluster.heartbeat(1)
    assert rig.state.leader == 1


def test_balanced_waits_for_fenced_members_of_the_elr() -> None:
    rig = Rig()
    rig.fence(3, 2, 1)
    rig.unclean(1)
    rig.cluster.heartbeat(3)
    assert rig.phase() is Phase.ELIGIBLE_AWAITED
    assert rig.asked() == []
    rig.cluster.heartbeat(2)  # it was only fenced
    assert (rig.state.leader, rig.state.recovering) == (2, False)
    assert rig.phase() is None


def test_aggressive_does_not_wait_for_fenced_members_of_the_elr_but_yields_to_one_that_returns() -> None:
    rig = Rig("Aggressive")
    rig.fence(3, 2, 1)
    rig.unclean(1)
    assert rig.phase() is Phase.COMPARING
    assert rig.asked() == [1]
    rig.cluster.heartbeat(2)
    assert (rig.state.leader, rig.state.recovering) == (2, False)
    rig.answer(1, 9, 999)
    assert rig.state.leader == 2


def test_none_elects_nobody_ever() -> None:
    rig = lost("None")
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    rig.cluster.advance(10 * TIMEOUT_MS)
    assert rig.phase() is Phase.OPERATOR_AWAITED
    assert (rig.asked(), rig.state.leader) == ([], -1)


def test_balanced_waits_until_all_of_last_known_elr_are_there() -> None:
    rig = lost()
    rig.cluster.heartbeat(1)
    rig.cluster.heartbeat(3)
    assert rig.phase() is Phase.LAST_KNOWN_AWAITED
    rig.cluster.advance(10 * TIMEOUT_MS)
    assert (rig.asked(), rig.state.leader) == ([], -1)
    assert rig.cluster.controller.recoveries.live_count == 1
    rig.cluster.heartbeat(2)
    assert rig.phase() is Phase.COMPARING
    assert sorted(rig.asked()) == [1, 2, 3]


def test_a_member_of_last_known_elr_that_was_unregistered_is_not_waited_for() -> None:
    from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest

    rig = lost()
    rig.cluster.heartbeat(1)
    assert rig.phase() is Phase.LAST_KNOWN_AWAITED
    rig.cluster.ask(UnregisterBrokerRequest(broker_id=2))
    assert rig.phase() is Phase.COMPARING
    rig.answer(1, 0, 5)
    assert rig.state.leader == 1


# -- enough


def test_balanced_needs_every_last_known_member_and_waits_for_the_others_until_its_deadline() -> None:
    rig = lost()
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    rig.asked()
    rig.answer(1, 0, 5)
    rig.answer(3, 0, 9)
    rig.cluster.advance(2 * TIMEOUT_MS)
    assert rig.state.leader == -1  # 2 has not answered, and nothing makes up for it
    rig.answer(2, 0, 7)
    assert (rig.state.leader, rig.state.isr, rig.state.elr, rig.state.last_known_elr) == (3, (3,), (), ())
    assert rig.state.recovering


def test_balanced_does_without_others_after_its_deadline() -> None:
    rig = lost()
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    rig.asked()
    rig.answer(1, 0, 5)
    rig.answer(2, 0, 7)
    rig.cluster.advance(TIMEOUT_MS - 1)
    assert rig.state.leader == -1
    rig.cluster.advance(1)
    assert rig.state.leader == 2


def test_aggressive_elects_at_once_when_everybody_has_answered() -> None:
    rig = lost("Aggressive")
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    assert sorted(rig.asked()) == [1, 2, 3]
    rig.answer(1, 0, 5)
    rig.answer(2, 0, 7)
    assert rig.state.leader == -1
    rig.answer(3, 0, 6)
    assert rig.state.leader == 2


def test_aggressive_gives_absent_replicas_a_grace_and_slow_ones_the_timeout() -> None:
    rig = lost("Aggressive")
    rig.cluster.heartbeat(1)
    assert rig.asked() == [1]
    rig.answer(1, 0, 5)
    rig.cluster.advance(GRACE_MS - 1)
    assert rig.state.leader == -1
    rig.cluster.advance(1)
    assert rig.state.leader == 1

    rig = lost("Aggressive")
    rig.cluster.heartbeat(1)
    rig.cluster.heartbeat(2)
    rig.asked()
    rig.answer(1, 0, 5)
    rig.cluster.advance(TIMEOUT_MS - 1)
    assert rig.state.leader == -1  # 2 is there, and slow
    rig.cluster.advance(1)
    assert rig.state.leader == 1


def test_aggressive_takes_the_first_answer_after_its_deadline() -> None:
    rig = lost("Aggressive")
    rig.cluster.heartbeat(1)
    rig.cluster.heartbeat(2)
    rig.asked()
    rig.cluster.advance(TIMEOUT_MS + 1)
    assert rig.state.leader == -1
    rig.answer(1, 0, 0)
    assert rig.state.leader == 1


def test_aggressives_times_begin_when_there_is_a_replica_to_ask() -> None:
    """After an outage that is longer than they are, too, the first broker back does not win by a second."""
    rig = lost("Aggressive")
    rig.cluster.advance(TIMEOUT_MS + 1)
    rig.cluster.heartbeat(1)
    assert rig.asked() == [1]
    rig.answer(1, 0, 0)
    assert rig.state.leader == -1
    rig.cluster.heartbeat(2)
    rig.cluster.heartbeat(3)
    rig.asked()
    rig.answer(2, 0, 7)
    rig.answer(3, 0, 5)
    assert rig.state.leader == 2


# -- which answers count


def test_an_answer_from_before_a_restart_is_void() -> None:
    rig = lost()
    for broker_id in (1, 2):
        rig.cluster.heartbeat(broker_id)
    rig.cluster.heartbeat(3)
    rig.asked()
    rig.answer(2, 0, 100)
    rig.unclean(2, unfence=False)
    assert rig.phase() is Phase.LAST_KNOWN_AWAITED
    rig.cluster.heartbeat(2)
    rig.answer(1, 0, 50)
    rig.answer(3, 0, 10)
    assert rig.state.leader == -1
    assert 2 in rig.asked()
    rig.answer(2, 0, 0)
    assert rig.state.leader == 1


def test_an_answer_of_another_broker_epoch_or_leader_epoch_does_not_count_and_is_asked_for_again() -> None:
    rig = lost()
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    rig.asked()
    rig.answer(1, 0, 50, broker_epoch=1)
    rig.answer(2, 0, 60, leader_epoch=rig.state.leader_epoch - 1)
    rig.answer(3, 0, 10)
    assert rig.state.leader == -1
    rig.cluster.advance(100)
    assert sorted(rig.asked()) == [1, 2]
    rig.answer(1, 0, 50)
    rig.answer(2, 0, 60)
    assert rig.state.leader == 2


def test_who_does_not_answer_is_asked_again() -> None:
    rig = lost()
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    rig.asked()
    rig.cluster.controller.handle_replica_log_info(1, None, rig.cluster.now_ms)
    rig.cluster.controller.handle_replica_log_info(2, {}, rig.cluster.now_ms)  # an error for the partition
    assert rig.asked() == []
    rig.cluster.advance(1_000)
    assert sorted(rig.asked()) == [1, 2]


def test_who_never_answers_is_asked_less_and_less_often_until_it_registers_anew() -> None:
    rig = lost()
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    rig.asked()
    pauses = []
    for _ in range(7):
        rig.cluster.controller.handle_replica_log_info(1, None, rig.cluster.now_ms)
        began_ms = rig.cluster.now_ms
        while 1 not in rig.asked():
            rig.cluster.advance(500)
        pauses.append(rig.cluster.now_ms - began_ms)
    assert pauses == [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]


def test_an_answer_to_another_reign_is_ignored() -> None:
    rig = lost()
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    rig.asked()
    controller = rig.cluster.controller
    controller.deactivate(rig.cluster.image.copy())
    rig.cluster.commit(controller.activate(2, rig.cluster.now_ms, len(rig.cluster.log)))
    for broker_id in (1, 2, 3):
        rig.answer(broker_id, 0, 5)
    assert rig.state.leader == -1
    assert sorted(rig.asked()) == [1, 2, 3]


# -- the choice


@pytest.mark.parametrize(
    ("logs", "leader"),
    [
        ({1: (5, 10), 2: (6, 8), 3: (5, 10)}, 2),  # the epoch before the length
        ({1: (6, 8), 2: (6, 9), 3: (6, 8)}, 2),
        ({1: (6, 9), 2: (6, 9), 3: (6, 9)}, 1),  # as good as each other: the first of the replicas
        ({1: (-1, 0), 2: (-1, 0), 3: (0, 1)}, 3),
    ],
)
def test_the_latest_epoch_then_the_longest_log_then_the_place(logs: dict[int, tuple[int, int]], leader: int) -> None:
    rig = lost()
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    rig.asked()
    for broker_id, (epoch, end) in logs.items():
        rig.answer(broker_id, epoch, end)
    assert (rig.state.leader, rig.state.isr, rig.state.recovering) == (leader, (leader,), True)


OLDER = ((1, 0), (3, 60))
"""Leader epochs of the members of LastKnownElr: 60 records of epoch 1, the others of epoch 3."""


@pytest.mark.parametrize(
    ("logs", "leader"),
    [
        # 3 has led in epoch 4 and written a record in vain; a later leader has committed another one of epoch 3.
        ({1: (3, 70, OLDER), 2: (3, 70, OLDER), 3: (4, 70, (*OLDER, (4, 69)))}, 1),
        ({1: (3, 69, OLDER), 2: (3, 70, OLDER), 3: (4, 90, (*OLDER, (4, 69)))}, 2),
        # It has all that they still have, and more.
        ({1: (3, 69, OLDER), 2: (3, 68, OLDER), 3: (4, 70, (*OLDER, (4, 69)))}, 3),
        ({1: (3, 69, OLDER), 2: (3, 68, OLDER), 3: (3, 70, OLDER)}, 3),
        ({1: (-1, 0, ()), 2: (-1, 0, ()), 3: (4, 70, ())}, 3),
        ({1: (1, 50, ((1, 0),)), 2: (-1, 0, ()), 3: (4, 70, (*OLDER, (4, 69)))}, 3),
        # Its first records, and their epochs, are deleted.
        ({1: (1, 50, ((1, 0),)), 2: (-1, 0, ()), 3: (4, 70, ((3, 60), (4, 69)))}, 3),
        ({1: (1, 61, ((1, 0),)), 2: (-1, 0, ()), 3: (4, 70, ((3, 60), (4, 69)))}, 1),
        # It has no records of the epoch of theirs, or says nothing of its epochs.
        ({1: (2, 55, ((1, 0), (2, 50))), 2: (-1, 0, ()), 3: (4, 70, ((1, 0), (3, 60)))}, 1),
        ({1: (3, 70, OLDER), 2: (3, 70, OLDER), 3: (4, 90, ())}, 1),
    ],
)
def test_balanced_prefers_last_known_elr_to_a_log_that_lacks_some_of_theirs(
    logs: dict[int, tuple[int, int, tuple[tuple[int, int], ...]]], leader: int
) -> None:
    """A later epoch alone is no reason: a leader commits records of earlier epochs, too (seed 941145473028)."""
    rig = lost()
    assert rig.state.last_known_elr == (1, 2)
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    rig.asked()
    for broker_id, (epoch, end, epochs) in logs.items():
        rig.answer(broker_id, epoch, end, epochs=epochs)
    assert rig.state.leader == leader


# -- operators


def elect(rig: Rig, kind: int, *partitions: int, desired: int | None = None, version: int = 3) -> Any:
    leaders = None if desired is None else (desired,) * len(partitions)
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=(TopicPartitions(topic="t", partitions=partitions, desired_leaders=leaders),),
        timeout_ms=1_000,
    )
    return rig.cluster.ask(request, version)


def test_the_kips_elections_need_the_requests_third_version() -> None:
    rig = lost()
    assert elect(rig, 4, 0, desired=1, version=2).error_code == ErrorCode.INVALID_REQUEST
    assert elect(rig, 4, 0).error_code == ErrorCode.INVALID_REQUEST  # a designation names somebody
    assert elect(rig, 5, 0).error_code == ErrorCode.INVALID_REQUEST


def test_more_than_a_thousand_partitions_are_refused() -> None:
    rig = lost()
    response = elect(rig, 1, *range(1_002))
    errors = [each.error_code for each in response.replica_election_results[0].partition_result]
    assert errors[1:1000] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 999
    assert errors[1000:] == [ErrorCode.REQUEST_LIMIT_REACHED] * 2


def test_a_wish_for_the_longest_log_ends_with_its_request() -> None:
    rig = lost("None")
    rig.cluster.heartbeat(1)
    assert elect(rig, 3, 0) is None
    assert rig.phase() is Phase.LAST_KNOWN_AWAITED
    assert rig.cluster.finished_elections == []
    rig.cluster.advance(1_000)
    (wait,) = rig.cluster.finished_elections
    (result,) = wait.response().replica_election_results[0].partition_result
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert rig.phase() is Phase.OPERATOR_AWAITED


# -- configuration


@pytest.mark.parametrize(
    ("topic", "cluster", "static", "strategy"),
    [
        ({}, {}, {}, Strategy.BALANCED),
        ({}, {}, {"unclean.leader.election.enable": "true"}, Strategy.AGGRESSIVE),
        ({}, {"unclean.leader.election.enable": "false"}, {"unclean.recovery.strategy": "None"}, Strategy.BALANCED),
        ({"unclean.leader.election.enable": "true"}, {"unclean.recovery.strategy": "None"}, {}, Strategy.AGGRESSIVE),
        (
            {"unclean.leader.election.enable": "true", "unclean.recovery.strategy": "None"},
            {"unclean.recovery.strategy": "Balanced"},
            {},
            Strategy.NONE,
        ),
        ({}, {"unclean.recovery.strategy": "Aggressive"}, {"unclean.recovery.strategy": "None"}, Strategy.AGGRESSIVE),
    ],
)
def test_the_more_specific_resource_and_on_it_the_strategy_comes_first(
    topic: dict[str, str], cluster: dict[str, str], static: dict[str, str], strategy: Strategy
) -> None:
    rig = Cluster(static_configs={**IDLE_OFF, **static})
    rig.start(1)
    rig.create_topic("t", (1,))
    for name, value in topic.items():
        rig.set_config((2, "t"), name, value)
    for name, value in cluster.items():
        rig.set_config((4, ""), name, value)
    assert recovery_strategy(rig.image, "t", 100) is strategy


# -- many at once


def test_thousands_of_partitions_are_asked_for_in_questions_of_a_thousand() -> None:
    cluster = Cluster(static_configs=IDLE_OFF, auto_leader_rebalance_enable=False)
    cluster.start(1, 2)
    cluster.create_topic("many", *[(1, 2)] * 2_500, **{"unclean.recovery.strategy": "Aggressive"})
    cluster.heartbeat(2, want_fence=True)
    cluster.controller._heartbeats.end_session(1)
    cluster.register(1, 2, previous_broker_epoch=-1)
    cluster.heartbeat(1)
    cluster.advance(0)
    answered = 0
    for _ in range(3):
        (question,) = cluster.asked
        cluster.asked = []
        answered += len(question.partitions)
        assert len(question.partitions) <= 1_000
        _answer_all(cluster, question)
    assert answered == 2_500
    cluster.advance(GRACE_MS, beating=(1,))
    assert all(state.leader == 1 for state in cluster.image.topics[cluster.image.topic_ids["many"]].partitions.values())


def _answer_all(cluster: Cluster, question: AskReplica) -> None:
    epoch = cluster.image.brokers[question.broker_id].epoch
    infos = {}
    for key in question.partitions:
        state = cluster.image.partition(*key)
        assert state is not None
        infos[key] = LogInfo(epoch, state.leader_epoch, 0, 5)
    cluster.controller.handle_replica_log_info(question.broker_id, infos, cluster.now_ms)
    cluster.advance(0)


def test_a_possible_loss_is_remembered_in_the_image_and_in_its_snapshot() -> None:
    rig = lost()
    assert rig.state.last_unclean_epoch == -1
    for broker_id in (1, 2, 3):
        rig.cluster.heartbeat(broker_id)
    rig.asked()
    for broker_id in (1, 2, 3):
        rig.answer(broker_id, 0, 5)
    epoch = rig.state.leader_epoch
    assert (rig.state.leader, rig.state.last_unclean_epoch) == (1, epoch)
    rig.fence(2)
    assert rig.cluster.alter_isr("t", (1, 3)) == ErrorCode.NONE
    assert (rig.state.recovering, rig.state.last_unclean_epoch) == (False, epoch)
    image = rig.cluster.image
    version = image.metadata_version
    again = from_records(
        decode_record(encode_record(record, record_version(type(record), version))) for record in to_records(image)
    )
    assert again == image
