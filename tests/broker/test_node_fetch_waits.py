"""Fetches that wait: what ends the wait, and how soon."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.client.positions import fetch_request
from tanist.client.sequences import produce_request
from tanist.sim.scripted.cluster import FETCH_VERSION, PRODUCE_VERSION
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tests.broker.cluster_rig import Cluster


def test_the_news_of_a_high_watermark_reaches_followers_soon_though_nothing_more_is_written() -> None:
    cluster = Cluster()
    cluster.create_topic("t")
    cluster.run(1_000)
    assert cluster.produce("t", [b"value"]).error_code == 0
    cluster.run(20)
    assert {hosted.replica.high_watermark for hosted in cluster.hosted("t").values()} == {1}


def test_under_load_the_news_comes_with_the_next_records() -> None:
    """One fetch a record and follower: an answer for the high watermark alone would double them."""
    cluster = Cluster()
    cluster.create_topic("t")
    cluster.run(1_000)
    leader = cluster.leader("t")
    assert leader is not None
    metrics = cluster.node(leader).context.metrics
    before, count = metrics.fetch_requests, 100
    answers: list[Any] = []
    for _ in range(count):
        request = produce_request(("t", 0), cluster.records([b"value"]), timeout_ms=2_000)
        cluster.send(request, PRODUCE_VERSION, to=leader, timeout_ms=2_000, heard=answers.append)
        cluster.run(3)
    cluster.run(100)
    assert [answer.responses[0].partition_responses[0].error_code for answer in answers] == [0] * count
    assert metrics.fetch_requests - before <= 2 * count + 20


def consume(
    cluster: Cluster, partitions: tuple[int, ...], min_bytes: int, *, max_bytes: int = 1 << 20, of_each: int = 1 << 20
) -> list[Any]:
    """Begin a fetch of several partitions; the list gets its answer."""
    answers: list[Any] = []
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=10_000,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=(
            FetchTopic(
                topic="t",
                partitions=tuple(
                    FetchPartition(
                        partition=index, current_leader_epoch=-1, last_fetched_epoch=-1, partition_max_bytes=of_each
                    )
                    for index in partitions
                ),
            ),
        ),
    )

    def handle_response(response: Any) -> None:
        answers.append([len(partition.records or b"") for partition in response.responses[0].partitions])

    consumer = cluster.new_client("consumer")  # on a connection of its own: answers come in order
    cluster.send(request, 12, to=1, timeout_ms=15_000, client=consumer, heard=handle_response)
    cluster.run(100)
    return answers


def test_a_fetch_waits_for_the_bytes_of_all_its_partitions_together() -> None:
    cluster = Cluster(nodes=1, config={"min.insync.replicas": "1"})
    cluster.create_topic("t", partitions=3, factor=1)
    answers = consume(cluster, (0, 1, 2), 140)
    cluster.produce("t", [b"value"], partition=2)
    cluster.run(100)
    assert answers == []
    cluster.produce("t", [b"value"], partition=0)
    cluster.run(100)
    ((first, second, third),) = answers
    assert first == third >= 70
    assert second == 0


def test_a_fetch_for_any_byte_is_answered_by_the_first_that_comes() -> None:
    cluster = Cluster(nodes=1, config={"min.insync.replicas": "1"})
    cluster.create_topic("t", partitions=3, factor=1)
    answers = consume(cluster, (0, 1, 2), 1)
    assert answers == []
    cluster.produce("t", [b"value"], partition=1)
    cluster.run(100)
    ((first, second, third),) = answers
    assert (first, third) == (0, 0)
    assert second >= 70


@pytest.mark.parametrize(("min_bytes", "max_bytes", "of_each"), [(200, 1 << 20, 200), (500, 200, 1 << 20)])
def test_a_fetch_does_not_wait_for_more_than_its_answer_may_hold(min_bytes: int, max_bytes: int, of_each: int) -> None:
    """Two batches of 73 bytes fit into 200, and a third would not: whole batches are sent."""
    cluster = Cluster(nodes=1, config={"min.insync.replicas": "1"})
    cluster.create_topic("t", factor=1)
    for _ in range(3):
        cluster.produce("t", [b"value"])
    assert consume(cluster, (0,), min_bytes, max_bytes=max_bytes, of_each=of_each) == [[146]]


def test_a_fetch_does_not_wait_for_more_than_a_segment_has() -> None:
    """An answer has records of one segment: those of the next come with the next fetch."""
    cluster = Cluster(nodes=1, config={"min.insync.replicas": "1"})
    cluster.create_topic("t", factor=1, config={"segment.bytes": str(1 << 20)})
    cluster.produce("t", [bytes(600_000)])
    cluster.produce("t", [bytes(600_000)])
    segments = [path for path in cluster.host(1).disk.paths() if "/t-0/" in path and path.endswith(".log")]
    assert len(segments) == 2
    ((size,),) = consume(cluster, (0,), 1_000_000, max_bytes=2 << 20, of_each=2 << 20)
    assert 600_000 < size < 700_000


def test_a_fetch_waits_for_the_bytes_that_its_answer_may_hold() -> None:
    """What a partition has beyond its share of the answer makes up for no other."""
    cluster = Cluster(nodes=1, config={"min.insync.replicas": "1"})
    cluster.create_topic("t", partitions=2, factor=1)
    answers = consume(cluster, (0, 1), 300, of_each=200)
    for _ in range(6):
        cluster.produce("t", [b"value"])
    cluster.run(100)
    assert answers == []
    cluster.produce("t", [b"value"], partition=1)
    cluster.produce("t", [b"value"], partition=1)
    cluster.run(100)
    assert answers == [[146, 146]]


def test_a_fetch_that_waits_is_given_up_when_its_client_goes() -> None:
    cluster = Cluster(nodes=1, config={"min.insync.replicas": "1"})
    cluster.create_topic("t", factor=1)
    client = cluster.new_client("gone")
    request = fetch_request(("t", 0), 0, max_bytes=1 << 20, max_wait_ms=600_000)
    cluster.send(request, FETCH_VERSION, to=1, timeout_ms=600_000, client=client)
    cluster.run(100)
    purgatory = cluster.node(1).components.purgatory
    assert len(purgatory) == 1
    client.run(client.end_life)
    cluster.run(100)
    assert len(purgatory) == 0
