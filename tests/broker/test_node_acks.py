"""Produces with acks=all: each is answered when its own records are committed, whatever waits beside it."""

from __future__ import annotations

from typing import Any

from tanist.broker.api.produce import ProduceWait
from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.world import BROKER_PORT
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.cluster_rig import Cluster


def begin(cluster: Cluster, leader: int, sender: SimClient, sequence: int) -> list[Any]:
    """An idempotent producer sends a batch; the list gets the partition's answer."""
    answers: list[Any] = []
    wall_ms = cluster.client.clock.wall_ms()
    batch = encode_batch([NewRecord(wall_ms, None, b"value")], producer_id=7, producer_epoch=0, base_sequence=sequence)
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(records=bytes(batch)),))
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=(data,))
    channel = sender.channel((cluster.world.hosts[leader].name, BROKER_PORT))
    sender.run(
        lambda: channel.call(
            request, 9, 60_000, lambda found: found and answers.append(found.responses[0].partition_responses[0])
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
    # On connections of their own: answers come in order.
    first = begin(cluster, leader, SimClient(cluster.world, "first", History()), 0)
    second = begin(cluster, leader, SimClient(cluster.world, "second", History()), 1)
    retry = begin(cluster, leader, SimClient(cluster.world, "retry", History()), 0)
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


def test_a_produce_that_waits_is_given_up_when_its_client_goes() -> None:
    cluster = Cluster()
    cluster.create_topic("t")
    leader = cluster.leader("t")
    assert leader is not None
    for follower in {1, 2, 3} - {leader}:
        cluster.world.network.block(f"node{follower}", f"node{leader}")
    sender = SimClient(cluster.world, "sender", History())
    assert begin(cluster, leader, sender, 0) == []
    assert waiting(cluster, leader) == 1
    sender.run(sender.channel((cluster.world.hosts[leader].name, BROKER_PORT)).close)
    cluster.run(100)
    assert waiting(cluster, leader) == 0


def waiting(cluster: Cluster, leader: int) -> int:
    """Produces that wait on the leader."""
    return sum(isinstance(each, ProduceWait) for each in cluster.node(leader).components.purgatory.waiting())
