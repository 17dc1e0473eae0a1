"""ElectLeaders through a broker: an election that takes its time, for replicas that have yet to return."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.wire.errors import ErrorCode
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tests.broker.cluster_rig import Cluster

LONGEST_LOG_BALANCED = 3


@pytest.fixture
def cluster() -> Cluster:
    """A partition on 4 and 5 that waits for an operator: both have lost power, and 5 is not back."""
    cluster = Cluster(nodes=5, config={"min.insync.replicas": "2", "unclean.recovery.strategy": "None"})
    cluster.create_topic("t", assignment=[[4, 5]])
    for lost in (5, 4):
        cluster.world.hosts[lost].lose_power()
        cluster.run(15_000)
    cluster.world.hosts[5].start()
    cluster.until(lambda: state(cluster).last_known_elr == (5,))
    cluster.world.hosts[5].kill()
    cluster.world.hosts[4].start()
    cluster.until(lambda: state(cluster).last_known_elr == (4, 5))
    assert (state(cluster).leader, state(cluster).isr, state(cluster).elr) == (-1, (), ())
    return cluster


def state(cluster: Cluster) -> Any:
    image = cluster.node(1).metadata.image
    return image.topics[image.topic_ids["t"]].partitions[0]


def elect(cluster: Cluster, timeout_ms: int) -> tuple[int, int]:
    """(the partition's error, how long it took)."""
    wanted = TopicPartitions(topic="t", partitions=(0,))
    request = ElectLeadersRequest(election_type=LONGEST_LOG_BALANCED, topic_partitions=(wanted,), timeout_ms=timeout_ms)
    began_ms = cluster.world.now_ms
    answer = cluster.ask(request, 3, to=2, timeout_ms=timeout_ms + 10_000)
    assert answer is not None, "the broker has closed the connection"
    return answer.replica_election_results[0].partition_result[0].error_code, cluster.world.now_ms - began_ms


@pytest.mark.parametrize("timeout_ms", [1_000, 60_000])
def test_it_is_waited_for_as_long_as_the_client_says(cluster: Cluster, timeout_ms: int) -> None:
    error, took_ms = elect(cluster, timeout_ms)
    assert error == ErrorCode.REQUEST_TIMED_OUT
    assert timeout_ms <= took_ms < timeout_ms + 1_000
    # The wish has ended with the wait: the strategy is None again.
    cluster.world.hosts[5].start()
    cluster.run(10_000)
    assert state(cluster).leader == -1


def test_it_is_answered_once_the_last_member_is_back(cluster: Cluster) -> None:
    cluster.client.clock.call_at(cluster.client.clock.now_ms() + 40_000, cluster.world.hosts[5].start)
    error, took_ms = elect(cluster, 120_000)
    assert error == 0
    assert 40_000 <= took_ms < 60_000
    assert state(cluster).leader in (4, 5)
