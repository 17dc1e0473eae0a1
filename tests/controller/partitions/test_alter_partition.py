"""AlterPartition at the controller: rules 24-29."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tanist.controller.decision import Decision
from tanist.controller.partitions.alter_partition import alter_partition
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from tanist.wire.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.controller.world import World


def world(elr: bool = True, **topic: Any) -> World:
    fields = {"assignments": [[1, 2, 3]], "config": {"min.insync.replicas": "2"}, **topic}
    return World(
        {"cluster": {"brokers": [1, 2, 3, 4], "unfenced": [1, 2, 3, 4], "elr": elr}, "topics": {"foo": fields}}
    )


def ask(world: World, isr: tuple[int, ...] = (1, 2), sender: int = 1, **changes: Any) -> Decision:
    """A request about foo-0 by its leader, right in everything but `changes`."""
    topic_id, state = world.partition("foo", 0)
    epochs = changes.pop("epochs", {})
    broker_epoch = changes.pop("broker_epoch", sender + 100)
    topic_id = changes.pop("topic_id", topic_id)
    wanted = PartitionData(
        partition_index=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=tuple(
            BrokerState(broker_id=broker, broker_epoch=epochs.get(broker, broker + 100)) for broker in isr
        ),
    )
    partitions = tuple(replace(wanted, **each) for each in changes.pop("twice", [changes]))
    request = AlterPartitionRequest(
        broker_id=sender, broker_epoch=broker_epoch, topics=(TopicData(topic_id=topic_id, partitions=partitions),)
    )
    return alter_partition(world.image, request, world.settings)


def error_of(decision: Decision) -> ErrorCode:
    response: Any = decision.response
    return ErrorCode(response.error_code or response.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("broker_epoch", [100, 102, -1])
def test_rule_24_a_broker_of_another_life_is_refused_whole(broker_epoch: int) -> None:
    decision = ask(world(), broker_epoch=broker_epoch)
    assert error_of(decision) is ErrorCode.STALE_BROKER_EPOCH
    assert not decision.records
    response: Any = decision.response
    assert response.topics == ()


def test_rule_24_an_unknown_broker_is_refused_whole() -> None:
    assert error_of(ask(world(), sender=9)) is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize("topic_id", [UUID(int=0), UUID(int=987)])
def test_rule_24_an_unknown_topic_is_an_error_of_its_partitions(topic_id: UUID) -> None:
    assert error_of(ask(world(), topic_id=topic_id)) is ErrorCode.UNKNOWN_TOPIC_ID


# Each also breaks every later check of the list, so the order is tested as well.
BROKEN: list[tuple[ErrorCode, dict[str, Any]]] = [
    (ErrorCode.INELIGIBLE_REPLICA, {"isr": (1, 4)}),
    (ErrorCode.INVALID_REQUEST, {"isr": (1, 1)}),
    (ErrorCode.INVALID_REQUEST, {"isr": (1, 5)}),
    (ErrorCode.INVALID_REQUEST, {"isr": (2, 4)}),
    (ErrorCode.INVALID_REQUEST, {"isr": ()}),
    (ErrorCode.INVALID_REQUEST, {"isr": (1,), "leader_recovery_state": 1}),
    (ErrorCode.INVALID_REQUEST, {"isr": (1, 4), "leader_recovery_state": 2}),
    (ErrorCode.INVALID_UPDATE_VERSION, {"isr": (1, 5), "partition_epoch": 0}),
    (ErrorCode.INVALID_REQUEST, {"isr": (1, 5), "partition_epoch": 0, "sender": 2}),
    (ErrorCode.FENCED_LEADER_EPOCH, {"isr": (1, 5), "partition_epoch": 0, "sender": 2, "leader_epoch": 0}),
    (ErrorCode.NOT_CONTROLLER, {"isr": (1, 5), "partition_epoch": 99, "sender": 2, "leader_epoch": 0}),
    (ErrorCode.NOT_CONTROLLER, {"isr": (1, 5), "partition_epoch": 0, "sender": 2, "leader_epoch": 99}),
    (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {"isr": (1, 5), "leader_epoch": 99, "partition_index": 8}),
]


@pytest.mark.parametrize(("error", "changes"), BROKEN)
def test_rule_25_checks_in_kafkas_order(error: ErrorCode, changes: dict[str, Any]) -> None:
    there = world(assignments=[[1, 2, 3, 4]])
    there.fence(4)
    there.elect({"type": "PREFERRED", "topic": "foo", "p": 0, "expect_error": "ELECTION_NOT_NEEDED"})
    topic_id, _ = there.partition("foo", 0)
    there.replay(PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=1))  # so that 0 is an old leader epoch
    decision = ask(there, **changes)
    assert error_of(decision) is error
    assert not decision.records


def test_rule_25_recovering_takes_a_recovering_partition_with_one_member() -> None:
    there = world()
    topic_id, _ = there.partition("foo", 0)
    there.replay(PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader_recovery_state=1, isr=(1,)))
    assert error_of(ask(there, isr=(1, 2), leader_recovery_state=1)) is ErrorCode.INVALID_REQUEST
    assert error_of(ask(there, isr=(1,), leader_recovery_state=1)) is ErrorCode.NONE
    done = ask(there, isr=(1, 2))
    assert error_of(done) is ErrorCode.NONE
    there.apply(done)
    assert not there.partition("foo", 0)[1].recovering
    assert error_of(ask(there, isr=(1,), leader_recovery_state=1)) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("event", ["fence", "controlled_shutdown"])
def test_rule_26_an_inactive_member_is_ineligible_even_if_it_was_in(event: str) -> None:
    there = world()
    topic_id, _ = there.partition("foo", 0)
    getattr(there, event)(2)
    there.replay(PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=(1, 2, 3)))
    assert error_of(ask(there, isr=(1, 2, 3))) is ErrorCode.INELIGIBLE_REPLICA


def test_rule_26_broker_epochs_a5() -> None:
    there = world()
    assert error_of(ask(there, epochs={2: 99})) is ErrorCode.INELIGIBLE_REPLICA
    assert error_of(ask(there, epochs={2: -1})) is ErrorCode.NONE
    assert error_of(ask(there, epochs={2: 102})) is ErrorCode.NONE
    there.register({"broker": 2, "clean": False})
    there.unfence(2)
    assert error_of(ask(there, isr=(1, 2, 3), epochs={2: 102})) is ErrorCode.INELIGIBLE_REPLICA


def test_rule_26_version_2_has_no_epochs() -> None:
    there = world()
    decision = ask(there, isr=(), new_isr=(1, 2))
    assert error_of(decision) is ErrorCode.NONE
    assert [record.isr for record in decision.records if isinstance(record, PartitionChangeRecord)] == [(1, 2)]
    there.fence(2)
    assert error_of(ask(there, isr=(), new_isr=(1, 2))) is ErrorCode.INELIGIBLE_REPLICA


def test_rule_27_success_has_the_state_after_the_change() -> None:
    there = world()
    decision = ask(there, isr=(1,))
    response: Any = decision.response
    data = response.topics[0].partitions[0]
    assert (data.leader_id, data.leader_epoch, data.isr, data.partition_epoch) == (1, 0, (1,), 1)
    there.apply(decision)
    assert there.partition("foo", 0)[1].elr == (2, 3)


def test_rule_27_a_leader_that_ends_its_own_leadership_is_reported_so() -> None:
    there = world(elr=False)
    there.reassign({"topic": "foo", "p": 0, "replicas": [4, 2, 3]})
    decision = ask(there, isr=(1, 2, 3, 4))
    assert error_of(decision) is ErrorCode.NEW_LEADER_ELECTED
    there.apply(decision)
    state = there.partition("foo", 0)[1]
    assert (state.replicas, state.leader, state.isr) == ((4, 2, 3), 4, (2, 3, 4))


def test_rule_28_the_same_isr_is_a_success_without_a_record() -> None:
    decision = ask(world(), isr=(1, 2, 3))
    assert error_of(decision) is ErrorCode.NONE
    assert not decision.records


@pytest.mark.parametrize(("unclean", "leader"), [("false", -1), ("true", 2)])
def test_rule_29_the_topics_unclean_configuration_counts(unclean: str, leader: int) -> None:
    """The sender moves away while 4, the only other member, cannot use its directory; 2 is not in sync."""
    there = world(elr=False, assignments=[[1, 2]], config={"unclean.leader.election.enable": unclean})
    there.fence(2)
    there.unfence(2)
    there.reassign({"topic": "foo", "p": 0, "replicas": [4, 2]})
    there.replay(BrokerRegistrationChangeRecord(broker_id=4, broker_epoch=104, log_dirs=(UUID(int=4444),)))
    there.apply(ask(there, isr=(1, 4)))
    assert there.partition("foo", 0)[1].leader == leader


def test_a7_the_older_of_two_requests_in_flight_is_refused() -> None:
    there = world()
    older = ask(there, isr=(1, 2))
    stale = {"partition_epoch": there.partition("foo", 0)[1].partition_epoch}
    there.fence(3)
    there.unfence(3)
    assert error_of(older) is ErrorCode.NONE
    assert error_of(ask(there, isr=(1, 2, 3), **stale)) is ErrorCode.INVALID_UPDATE_VERSION


def test_a_partition_named_twice_is_judged_by_what_the_first_has_made_of_it() -> None:
    there = world()
    one = {"new_isr_with_epochs": (BrokerState(broker_id=1), BrokerState(broker_id=2))}
    two = {"new_isr_with_epochs": (BrokerState(broker_id=1), BrokerState(broker_id=3))}
    decision = ask(there, twice=[one, two])
    response: Any = decision.response
    assert [each.error_code for each in response.topics[0].partitions] == [0, ErrorCode.INVALID_UPDATE_VERSION]
    assert len(decision.records) == 1
