"""Fetches that wait: what ends the wait, and how soon."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.world import BROKER_PORT
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
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
    channel = cluster.client.channel((cluster.world.hosts[leader].name, BROKER_PORT))
    for _ in range(count):
        batch = bytes(encode_batch([NewRecord(cluster.client.clock.wall_ms(), None, b"value")]))
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(records=batch),))
        request = ProduceRequest(acks=-1, timeout_ms=2_000, topic_data=(data,))
        cluster.client.run(partial(channel.call, request, 9, 2_000, answers.append))
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

    client = SimClient(cluster.world, "consumer", History())  # on a connection of its own: answers come in order
    channel = client.channel((cluster.world.hosts[1].name, BROKER_PORT))
    client.run(lambda: channel.call(request, 12, 15_000, handle_response))
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
    segments = [path for path in cluster.world.hosts[1].disk.paths() if "/t-0/" in path and path.endswith(".log")]
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
    client = SimClient(cluster.world, "gone", History())
    channel = client.channel((cluster.world.hosts[1].name, BROKER_PORT))
    part = FetchPartition(partition=0, current_leader_epoch=-1, last_fetched_epoch=-1, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=600_000,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=(FetchTopic(topic="t", partitions=(part,)),),
    )
    client.run(lambda: channel.call(request, 12, 600_000, lambda _: None))
    cluster.run(100)
    purgatory = cluster.node(1).components.purgatory
    assert len(purgatory) == 1
    client.run(channel.close)
    cluster.run(100)
    assert len(purgatory) == 0
