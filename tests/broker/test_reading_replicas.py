"""What tools and consumers read of a replica: above its high watermark, and while nobody leads."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.client.positions import LATEST, fetch_request, list_offsets_request, partition_in, read_from
from tests.broker.cluster_rig import Cluster
from tests.broker.test_node_unclean_recovery import degraded

WHERE = ("t", 0)
TOOL, DEBUGGING, CONSUMER = -3, -2, -1


def fetched(cluster: Cluster, node: int, replica_id: int, isolation_level: int = 0) -> tuple[int, list[bytes]]:
    """The high watermark and the values."""
    request = fetch_request(WHERE, 0, max_bytes=1 << 20, max_wait_ms=0)
    request.replica_id, request.isolation_level = replica_id, isolation_level
    answers: list[Any] = [None]
    while answers[-1] is None:  # a connection from before the node died ends by the first request
        answers.append(cluster.ask(request, 12, to=node))
    found = partition_in(answers[-1])
    assert found.error_code == 0
    return found.high_watermark, [bytes(each.value or b"") for each in read_from(found, 0).records]


def latest(cluster: Cluster, node: int, replica_id: int, isolation_level: int = 0) -> Any:
    request = list_offsets_request({WHERE: LATEST}, replica_id=replica_id)
    request.isolation_level = isolation_level
    return partition_in(cluster.ask(request, 7, to=node)).offset


@pytest.fixture
def lagging() -> Cluster:
    """Node 1 leads, and nobody follows: "two" stands above the high watermark."""
    cluster = Cluster(nodes=3, config={"min.insync.replicas": "2"})
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    assert cluster.produce("t", [b"one"]).error_code == 0
    cluster.until(lambda: fetched(cluster, 1, CONSUMER) == (1, [b"one"]))
    cluster.host(2).kill()
    cluster.host(3).kill()
    assert cluster.produce("t", [b"two"], acks=1).error_code == 0
    return cluster


def test_a_tool_reads_to_the_end_of_the_log_and_nobody_else(lagging: Cluster) -> None:
    assert fetched(lagging, 1, TOOL) == (1, [b"one", b"two"])
    for reader in (CONSUMER, DEBUGGING):
        assert fetched(lagging, 1, reader) == (1, [b"one"])


@pytest.mark.parametrize("isolation_level", [-1, 2, -128])
def test_what_is_no_isolation_level_shows_a_consumer_nothing_more(lagging: Cluster, isolation_level: int) -> None:
    assert fetched(lagging, 1, CONSUMER, isolation_level) == (1, [b"one"])
    assert latest(lagging, 1, CONSUMER, isolation_level) == 1
    assert latest(lagging, 1, DEBUGGING) == 2


def test_a_tool_reads_a_replica_while_nobody_leads() -> None:
    cluster = degraded(None, **{"unclean.recovery.strategy": "None"})
    for node in (1, 2):
        cluster.host(node).start()
    cluster.until(lambda: all(cluster.image.brokers[node].active for node in (1, 2)))
    assert not cluster.partition("t").has_leader
    assert fetched(cluster, 2, TOOL)[1] == [b"one", b"two"]
    assert fetched(cluster, 1, TOOL)[1] == [b"one"]
