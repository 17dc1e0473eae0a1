"""Produces with acks=all: each is answered when its own records are committed, whatever waits beside it."""

from __future__ import annotations

from typing import Any

from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.world import BROKER_PORT
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.cluster_rig import Cluster


def begin(cluster: Cluster, leader: int, client: str, sequence: int) -> list[Any]:
    """An idempotent producer sends a batch, on a connection of its own; the list gets the partition's answer."""
    answers: list[Any] = []
    wall_ms = cluster.client.clock.wall_ms()
    batch = encode_batch([NewRecord(wall_ms, None, b"value")], producer_id=7, producer_epoch=0, base_sequence=sequence)
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(records=bytes(batch)),))
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=(data,))
    sender = SimClient(cluster.world, client, History())
    channel = sender.channel((cluster.world.hosts[leader].name, BROKER_PORT))
    sender.run(
        lambda: channel.call(
            request, 9, 60_000, lambda response: answers.append(response.responses[0].partition_responses[0])
        )
    )
    cluster.run(100)
    return answers


def test_rule_119_a_retry_is_acknowledged_with_the_first_try_though_later_records_are_not_committed() -> None:
    cluster = Cluster(config={"replica.fetch.max.bytes": "1"})  # followers take one batch at a time
    cluster.create_topic("t")
    leader = cluster.leader("t")
    assert leader is not None
    followers = sorted({1, 2, 3} - {leader})
    network = cluster.world.network
    for follower in followers:
        network.block(f"node{follower}", f"node{leader}")
    first = begin(cluster, leader, "first", 0)
    second = begin(cluster, leader, "second", 1)
    retry = begin(cluster, leader, "retry", 0)
    assert [first, second, retry] == [[], [], []]
    state = cluster.hosted("t")[leader].leader
    assert state is not None
    network.heal()
    scheduler = cluster.world.scheduler
    for _ in range(200_000):
        if state.high_watermark:
            break
        scheduler.run_until(scheduler.now_us + 10)
    for follower in followers:
        network.block(f"node{follower}", f"node{leader}")
    cluster.run(100)
    assert state.high_watermark == 1
    assert [(each.error_code, each.base_offset) for each in first + retry] == [(0, 0), (0, 0)]
    assert second == []
