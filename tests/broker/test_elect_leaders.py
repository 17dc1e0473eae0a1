"""ElectLeaders through a broker: an election that takes its time, for replicas that have yet to return."""

from __future__ import annotations

import pytest

from tanist.client.admin import ElectionType, elect_request
from tanist.wire.errors import ErrorCode
from tests.broker.cluster_rig import Cluster

LONGEST_LOG_BALANCED = 3


@pytest.fixture
def cluster() -> Cluster:
    """A partition on 4 and 5 that waits for an operator: both have lost power, and 5 is not back."""
    cluster = Cluster(nodes=5, config={"min.insync.replicas": "2", "unclean.recovery.strategy": "None"})
    cluster.create_topic("t", assignment=[[4, 5]])
    for lost in (5, 4):
        cluster.host(lost).lose_power()
        cluster.run(15_000)
    cluster.host(5).start()
    cluster.until(lambda: cluster.partition("t").last_known_elr == (5,))
    cluster.host(5).kill()
    cluster.host(4).start()
    cluster.until(lambda: cluster.partition("t").last_known_elr == (4, 5))
    assert (cluster.partition("t").leader, cluster.partition("t").isr, cluster.partition("t").elr) == (-1, (), ())
    return cluster


def elect(cluster: Cluster, timeout_ms: int) -> tuple[int, int]:
    """(the partition's error, how long it took)."""
    request = elect_request(ElectionType.LONGEST_LOG_BALANCED, "t", timeout_ms=timeout_ms)
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
    cluster.host(5).start()
    cluster.run(10_000)
    assert cluster.partition("t").leader == -1


def test_it_is_answered_once_the_last_member_is_back(cluster: Cluster) -> None:
    cluster.client.clock.call_at(cluster.client.clock.now_ms() + 40_000, cluster.host(5).start)
    error, took_ms = elect(cluster, 120_000)
    assert error == 0
    assert 40_000 <= took_ms < 60_000
    assert cluster.partition("t").leader in (4, 5)
