"""Elections: what broker events do to partitions (43-48, 78, 79, 100, 101), ElectLeaders (102, 103), balancing (98,
99).
"""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Any
from uuid import UUID

from tanist.controller.decision import ControllerSettings
from tanist.controller.image.image import ELR_VERSION, METADATA_VERSION, MetadataImage
from tanist.controller.partitions import elections, fencing
from tanist.controller.partitions.elect_leaders import elect_leaders
from tanist.controller.partitions.unclean_recovery import UncleanRecoveries
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tanist.wire.metadata import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.controller.world import World

MIN_ISR_2 = {"min.insync.replicas": "2"}
UNCLEAN_ON = {"unclean.leader.election.enable": "true"}


def world(
    *assignments: list[int], elr: bool = True, config: dict[str, str] | None = None, unfenced: Any = (1, 2, 3, 4)
) -> World:
    return World(
        {
            "cluster": {"brokers": [1, 2, 3, 4], "unfenced": list(unfenced), "elr": elr},
            "topics": {
                "foo": {
                    "assignments": list(assignments) or [[1, 2, 3]],
                    "config": MIN_ISR_2 if config is None else config,
                }
            },
        }
    )


def expect(there: World, number: int = 0, **fields: Any) -> None:
    there.expect({f"foo-{number}": fields})


def leaderless() -> World:
    """ISR empty, 3 left first and is not eligible, 1 led last."""
    there = world()
    for broker in (3, 2, 1):
        there.fence(broker)
    expect(there, isr=[], elr=[1, 2], leader=-1, last_known_elr=[1])
    return there


# -- broker events ----------------------------------------------------------------------------------------------------


def test_rule_43_a_fence_leaves_the_isr_for_the_elr() -> None:
    there = world()
    there.fence(3)
    expect(there, isr=[1, 2], elr=[], leader=1, leader_epoch=0, partition_epoch=1)
    there.fence(1)
    expect(there, isr=[2], elr=[1], leader=2, leader_epoch=1, partition_epoch=2)


def test_rule_43_a_fence_of_an_eligible_replica_changes_nothing() -> None:
    there = world()
    there.fence(3)
    there.controlled_shutdown(2)
    expect(there, isr=[1], elr=[2], partition_epoch=2)
    there.fence(2)
    expect(there, isr=[1], elr=[2], partition_epoch=2)


def test_rule_44_an_unfence_elects_for_who_has_no_leader() -> None:
    there = leaderless()
    there.unfence(3)
    expect(there, leader=-1, elr=[1, 2])
    there.unfence(2)
    expect(there, leader=2, isr=[2], elr=[1], last_known_elr=[], recovery="RECOVERED")
    there.unfence(1)
    expect(there, leader=2, isr=[2], elr=[1])


def test_rule_45_a_controlled_shutdown_is_a_fence_to_the_partitions() -> None:
    there = world()
    there.controlled_shutdown(1)
    expect(there, isr=[2, 3], leader=2, elr=[])
    there.controlled_shutdown(2)
    expect(there, isr=[3], leader=3, elr=[2])


def test_rule_46_a_clean_restart_is_a_fence() -> None:
    there = world()
    there.fence(3)
    there.register({"broker": 2, "clean": True})
    expect(there, isr=[1], elr=[2])
    there.register({"broker": 2, "clean": True})
    expect(there, isr=[1], elr=[2])


def test_rule_46_an_unclean_restart_leaves_isr_and_elr_a3() -> None:
    there = world()
    there.fence(3)
    there.fence(2)
    expect(there, isr=[1], elr=[2])
    there.register({"broker": 2, "clean": False})
    expect(there, isr=[1], elr=[], leader_epoch=0)
    there.register({"broker": 1, "clean": False})
    expect(there, isr=[], elr=[], leader=-1, last_known_elr=[1])
    there.unfence(2)
    expect(there, leader=-1)
    there.unfence(1)
    expect(there, leader=1, isr=[1], recovery="RECOVERING", last_known_elr=[])


def test_rule_46_with_the_feature_off_an_unclean_restart_is_a_fence() -> None:
    there = world(elr=False)
    for broker in (3, 2):
        there.fence(broker)
    there.register({"broker": 1, "clean": False})
    expect(there, isr=[1], leader=-1)
    there.unfence(1)
    expect(there, isr=[1], leader=1, recovery="RECOVERED")


def test_deviation_46_a_remaining_elr_loses_who_restarts_uncleanly() -> None:
    there = leaderless()
    there.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=0))
    there.register({"broker": 2, "clean": False})
    expect(there, elr=[1], leader=-1)
    there.unfence(2)
    expect(there, leader=-1)
    there.unfence(1)
    expect(there, leader=1, isr=[1], elr=[])


def test_deviation_47_an_unregistered_broker_is_not_eligible() -> None:
    there = world()
    there.fence(3)
    there.fence(2)
    there.unregister(2)
    expect(there, isr=[1], elr=[])
    there.unregister(1)
    expect(there, isr=[], elr=[], leader=-1)
    there.register({"broker": 2, "clean": False})
    there.unfence(2)
    expect(there, leader=-1)


def test_rule_48_a_failed_directory_leaves_the_isr_of_what_it_held() -> None:
    there = world([1, 2, 3], [2, 3, 1])
    topic_id, _ = there.partition("foo", 0)
    elsewhere = UUID(int=88)
    there.replay(
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, log_dirs=(there.directory(1), elsewhere)),
        PartitionChangeRecord(
            partition_id=1, topic_id=topic_id, directories=(there.directory(2), there.directory(3), elsewhere)
        ),
    )
    records = elections.directories_offline(there.image, 1, there.settings, [there.directory(1)])
    there.replay(*records)
    expect(there, 0, isr=[2, 3], leader=2)
    expect(there, 1, isr=[2, 3, 1])
    assert elections.directories_offline(there.image, 1, there.settings, [UUID(int=99)]) == []
    assert elections.directories_offline(there.image, 9, there.settings, [elsewhere]) == []


def test_rule_48_a_replica_whose_directory_is_offline_is_eligible_but_not_elected() -> None:
    there = leaderless()
    there.replay(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, log_dirs=(UUID(int=88),)))
    there.unfence(2)
    expect(there, leader=-1, elr=[1, 2])


def test_rule_79_changes_of_one_event_come_from_the_state_before_it() -> None:
    there = world([1, 2, 3], [1, 3, 2])
    records: list[Any] = fencing.broker_fenced(there.image, 1, there.settings)
    assert [(record.partition_id, record.leader, record.isr) for record in records] == [(0, 2, (2, 3)), (1, 3, (3, 2))]
    assert there.partition("foo", 0)[1].leader == 1  # nothing is applied by deciding


def test_rule_101_with_unclean_elections_allowed_nobody_is_waited_for() -> None:
    there = world(config={**MIN_ISR_2, **UNCLEAN_ON})
    there.fence(3)
    there.fence(2)
    there.unfence(3)
    expect(there, isr=[1], elr=[2])
    there.fence(1)
    expect(there, leader=3, isr=[3], elr=[], recovery="RECOVERING", last_known_elr=[])


# -- min.insync.replicas ----------------------------------------------------------------------------------------------


def test_deviation_54_only_a_minimum_that_is_met_empties_the_elr() -> None:
    there = world([1, 2, 3], [1, 2, 3], config={"min.insync.replicas": "3"})
    topic_id, _ = there.partition("foo", 0)
    there.fence(3)
    there.replay(PartitionChangeRecord(partition_id=1, topic_id=topic_id, isr=(1,), eligible_leader_replicas=(2, 3)))
    expect(there, 0, isr=[1, 2], elr=[3])
    records: list[Any] = elections.min_isr_changed(there.image, topic_id, 2)
    assert [(record.partition_id, record.eligible_leader_replicas, record.leader) for record in records] == [
        (0, (), -2)
    ]
    assert elections.min_isr_changed(there.image, topic_id, 5) == []
    assert len(elections.min_isr_changed(there.image, topic_id, 1)) == 2


def test_deviation_54_who_waits_for_a_leader_keeps_its_candidates() -> None:
    there = leaderless()
    assert elections.min_isr_changed(there.image, there.partition("foo", 0)[0], 1) == []


# -- periodic tasks ---------------------------------------------------------------------------------------------------


def test_rule_98_leaders_go_back_to_the_first_replica_that_can() -> None:
    there = world([1, 2, 3], [1, 2, 3], [2, 1, 3])
    there.fence(1)
    there.unfence(1)
    topic_id, _ = there.partition("foo", 0)
    there.replay(PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=(1, 2, 3)))
    there.balance({"records": 1})
    expect(there, 0, leader=1)
    expect(there, 1, leader=2)  # 1 is not in sync there


def test_rule_98_a_run_has_a_limit_and_says_that_there_is_more() -> None:
    there = world([1, 2, 3], [1, 2, 3], [1, 2, 3])
    topic_id, _ = there.partition("foo", 0)
    for number in range(3):
        there.replay(PartitionChangeRecord(partition_id=number, topic_id=topic_id, leader=2))
    two_at_a_time = replace(there.settings, max_elections_per_imbalance_check=2)
    records, more = elections.preferred_elections(there.image, two_at_a_time)
    assert (len(records), more) == (2, True)
    there.replay(*records)
    records, more = elections.preferred_elections(there.image, two_at_a_time)
    assert (len(records), more) == (1, False)


def test_rule_99_balancing_revives_a_last_known_leader() -> None:
    there = world()
    for broker in (3, 2, 1):
        there.fence(broker)
        there.register({"broker": broker, "clean": False})
    expect(there, isr=[], elr=[], leader=-1, last_known_elr=[1])
    there.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=there.image.brokers[1].epoch, fenced=-1))
    there.balance({"records": 1})
    expect(there, leader=1, recovery="RECOVERING")


def test_rule_100_the_sweep_elects_where_the_configuration_allows_it() -> None:
    there = leaderless()
    there.unfence(3)
    there.unclean_sweep({"records": 0})
    there.set_config({"topic": "foo", "key": "unclean.leader.election.enable", "value": "true"})
    expect(there, leader=-1)
    there.unclean_sweep({"records": 1})
    expect(there, leader=3, isr=[3], elr=[], recovery="RECOVERING")


def test_rule_100_the_sweep_has_a_limit() -> None:
    there = world([1, 2], [1, 2], [1, 2], config=UNCLEAN_ON, elr=False, unfenced=(1, 2))
    for broker in (1, 2):
        there.fence(broker)
    there.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, fenced=-1))
    one_at_a_time = replace(there.settings, max_elections_per_imbalance_check=1)
    records, more = elections.unclean_elections(there.image, one_at_a_time)
    assert (len(records), more) == (1, True)


# -- ElectLeaders -----------------------------------------------------------------------------------------------------


def elect(there: World, election_type: int, topics: Any) -> tuple[list[tuple[str, int, ErrorCode]], int]:
    request = ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=None
        if topics is None
        else tuple(TopicPartitions(topic=name, partitions=tuple(numbers)) for name, numbers in topics.items()),
    )
    decision = elect_leaders(there.image, request, there.settings, UncleanRecoveries(there.settings), 0, 2)
    response: Any = decision.response
    there.apply(decision)
    return [
        (topic.topic, each.partition_id, ErrorCode(each.error_code))
        for topic in response.replica_election_results
        for each in topic.partition_result
    ], response.error_code


def test_rule_102_preferred() -> None:
    there = world([1, 2, 3], [1, 2, 3], [3, 2, 1])
    there.fence(1)
    there.unfence(1)
    topic_id, _ = there.partition("foo", 0)
    there.replay(PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=(1, 2, 3)))
    results, _ = elect(there, 0, {"foo": [0, 1, 2, 9], "bar": [0]})
    assert results == [
        ("foo", 0, ErrorCode.NONE),
        ("foo", 1, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        ("foo", 2, ErrorCode.ELECTION_NOT_NEEDED),
        ("foo", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("bar", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    expect(there, 0, leader=1, leader_epoch=2)


def test_rule_102_unclean_ignores_the_configuration_of_the_topic() -> None:
    there = leaderless()
    assert elect(there, 1, {"foo": [0]})[0] == [("foo", 0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)]
    there.unfence(3)
    assert elect(there, 1, {"foo": [0]})[0] == [("foo", 0, ErrorCode.NONE)]
    expect(there, leader=3, isr=[3], elr=[], recovery="RECOVERING")
    assert elect(there, 1, {"foo": [0]})[0] == [("foo", 0, ErrorCode.ELECTION_NOT_NEEDED)]


def test_rule_102_no_topics_is_all_of_them_without_those_that_need_nothing() -> None:
    there = world([1, 2, 3], [2, 1, 3])
    topic_id, _ = there.partition("foo", 0)
    there.replay(PartitionChangeRecord(partition_id=1, topic_id=topic_id, leader=3))
    assert elect(there, 0, None)[0] == [("foo", 1, ErrorCode.NONE)]
    assert elect(there, 0, None)[0] == []


def test_rule_103_other_types_are_not_known() -> None:
    assert elect(world(), 2, {"foo": [0]}) == ([], ErrorCode.INVALID_REQUEST)


def test_a_partition_named_twice_is_elected_once() -> None:
    there = world()
    topic_id, _ = there.partition("foo", 0)
    there.replay(PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=3))
    results, _ = elect(there, 0, {"foo": [0, 0]})
    assert [error for _, _, error in results] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    expect(there, leader=1, leader_epoch=2)


# -- size -------------------------------------------------------------------------------------------------------------


def test_fencing_one_broker_of_many_does_not_look_at_all_partitions() -> None:
    """100 000 partitions on 30 brokers, 10 002 of them on the broker that is fenced."""
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=30))
    image.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
    for broker in range(30):
        image.replay(RegisterBrokerRecord(broker_id=broker, broker_epoch=1, fenced=False, rack=None))
    for topic in range(1_000):
        topic_id = UUID(int=topic + 1)
        image.replay(TopicRecord(name=f"t{topic}", topic_id=topic_id))
        for number in range(100):
            first = topic * 100 + number
            replicas = tuple((first + step) % 30 for step in range(3))
            image.replay(
                PartitionRecord(
                    partition_id=number,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                )
            )
    before = process_time()
    records = fencing.broker_fenced(image, 7, ControllerSettings())
    took = process_time() - before
    assert len(records) == 10_002
    assert sum(isinstance(record, PartitionChangeRecord) and record.leader == 8 for record in records) == 3_334
    assert took < 1.0
    before = process_time()
    for record in records:
        image.replay(record)
    assert process_time() - before < 1.0
