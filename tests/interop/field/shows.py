"""Bugs of tests/field, played to Apache Kafka: whether the node has them.

Each is named after the test of the catalogue that it shows, whose row has the answer for each version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tanist.wire.errors import ErrorCode
from tests.interop.controllers.steps import AssignDirectories, Reassign
from tests.interop.field import transactional
from tests.interop.field.node import BROKER, CLUSTER, MIN_ISR, REAL, FieldNode

Show = Callable[[FieldNode], bool]


def _alone(node: FieldNode) -> tuple[str, int]:
    """A topic whose follower has been fenced, and the follower: ISR [real], ELR [follower]."""
    (follower,) = node.join(1)
    topic = node.topic(REAL, follower, min_isr=2)
    node.fence(follower)
    state = node.state(topic)
    assert (state.isr, state.elr) == ((REAL,), (follower,)), state
    return topic, follower


def the_same_minimum_again(node: FieldNode) -> bool:
    assert node.set(CLUSTER, MIN_ISR, "2") == 0
    (follower,) = node.join(1)
    topic = node.topic(REAL, follower)
    node.fence(follower)
    assert node.state(topic).elr == (follower,)
    assert node.set(CLUSTER, MIN_ISR, "2") == 0
    lost = node.state(topic).elr == ()
    assert node.set(CLUSTER, MIN_ISR, "1") == 0
    return lost


def joins_at_a_high_watermark_that_stands_still(node: FieldNode) -> bool:
    topic, follower = _alone(node)
    node.unfence(follower)
    assert node.produce(topic, [b"value"] * 1_000).error_code == 0
    assert node.high_watermark(topic) == 0
    node.fetch(follower, topic, 0)
    node.settle()
    return follower in node.state(topic).isr


def commits_under_min_isr(node: FieldNode) -> bool:
    topic, follower = _alone(node)
    node.unfence(follower)
    assert node.produce(topic, [b"value"] * 10).error_code == 0
    assert node.fetch(follower, topic, 5).error_code == 0
    return node.high_watermark(topic) > 0


def asks_for_more_than_there_are(node: FieldNode) -> bool:
    topic = node.topic(REAL, min_isr=2)
    return bool(node.produce(topic, [b"value"], acks=-1).error_code != 0)


def counts_a_fetch_from_before_a_reboot(node: FieldNode) -> bool:
    topic, follower = _alone(node)
    before = node.side.epoch(follower)
    node.reboot(follower)
    node.unfence(follower)
    node.fetch(follower, topic, 0, epoch=before)
    node.settle()
    joined = follower in node.state(topic).isr
    node.fetch(follower, topic, 0)
    node.settle()
    assert follower in node.state(topic).isr, "in its present life it joins"
    return joined


def believes_in_an_unclean_restart(node: FieldNode) -> bool:
    topic, follower = _alone(node)
    node.reboot(follower)
    return follower in node.state(topic).elr


def forgets_the_last_leader(node: FieldNode) -> bool:
    leader, follower = node.join(2)
    topic = node.topic(leader, follower, min_isr=2)
    node.fence(follower, leader)
    assert (node.state(topic).leader, node.state(topic).isr) == (-1, ())
    node.reboot(follower)
    node.reboot(leader)
    return node.state(topic).last_known_elr != (leader,)


def a_directory_clears_the_elr(node: FieldNode) -> bool:
    leader, follower = node.join(2)
    topic = node.topic(leader, follower, min_isr=2)
    node.fence(follower)
    assert node.state(topic).elr == (follower,)
    assigned = AssignDirectories(leader, ((topic, 0, 1),)).act(node.side)
    assert set(assigned.values()) == {"NONE"}, assigned
    return node.state(topic).elr == ()


def a_reassignment_ends_with_fewer_copies(node: FieldNode) -> bool:
    first, second, third = node.join(3)
    topic = node.topic(first, second, third)
    node.fence(second)
    assert set(node.state(topic).isr) == {first, third}
    assert Reassign(topic, 0, (first, second)).act(node.side)["error"] == "NONE"
    return third not in node.state(topic).replicas


def takes_a_brokers_own_minimum(node: FieldNode) -> bool:
    refused = node.set(BROKER, MIN_ISR, "2") == ErrorCode.INVALID_CONFIG
    return not (refused and node.set(CLUSTER, MIN_ISR, "1") == 0)


def lets_the_clusters_minimum_be_removed(node: FieldNode) -> bool:
    refused = node.set(CLUSTER, MIN_ISR, None) == ErrorCode.INVALID_CONFIG
    return not (refused and node.set(CLUSTER, MIN_ISR, "1") == 0)


SHOWS: Mapping[str, Show] = {
    "test_the_same_minimum_again_keeps_the_elr": the_same_minimum_again,
    "test_under_min_isr_a_replica_joins_when_it_keeps_up": joins_at_a_high_watermark_that_stands_still,
    "test_under_min_isr_the_high_watermark_stands_still": commits_under_min_isr,
    "test_no_more_replicas_must_be_in_sync_than_there_are": asks_for_more_than_there_are,
    "test_a_fetch_from_before_a_reboot_adds_nobody": counts_a_fetch_from_before_a_reboot,
    "test_an_unclean_shutdown_is_noticed": believes_in_an_unclean_restart,
    "test_a_partition_without_leader_remembers_the_last_one": forgets_the_last_leader,
    "test_the_choice_of_a_directory_keeps_the_elr": a_directory_clears_the_elr,
    "test_a_reassignment_does_not_end_with_fewer_copies": a_reassignment_ends_with_fewer_copies,
    "test_a_brokers_own_minimum_is_refused_and_the_clusters_is_not": takes_a_brokers_own_minimum,
    "test_the_clusters_minimum_cannot_be_removed_but_set_to_its_default": lets_the_clusters_minimum_be_removed,
    "test_a_late_end_is_fenced": transactional.takes_a_late_end,
    "test_a_marker_that_comes_again_is_acknowledged": transactional.refuses_a_repeated_marker,
    "test_a_producer_outlives_its_records": transactional.forgets_producers_with_their_records,
    "test_requests_of_one_producer_at_once_are_all_answered": transactional.answers_that_replicas_lack,
    "test_a_request_that_is_too_large_for_a_batch_does_not_end_a_controller": (
        transactional.resigns_over_a_large_request
    ),
    "test_a_failover_keeps_the_producer_ids_of_an_overflow": transactional.writes_no_other_producer_ids,
    "test_a_failover_keeps_the_epoch_of_a_producer_that_has_no_answer": transactional.writes_no_last_epoch,
}
"""By the test in tests/field."""
