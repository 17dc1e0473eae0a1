"""Produces with acks=all: each is answered when its own records are committed, whatever waits beside it."""

from __future__ import annotations

from typing import Any

from tanist.broker.api.produce import ProduceWait
from tanist.client.sequences import produce_request
from tanist.sim.scripted.cluster import PRODUCE_VERSION
from tanist.sim.workload.clients import SimClient
from tests.broker.cluster_rig import Cluster


def begin(cluster: Cluster, leader: int, sender: SimClient, sequence: int) -> list[Any]:
    """An idempotent producer sends a batch; the list gets the partition's answer."""
    answers: list[Any] = []
    batch = cluster.records([b"value"], producer_id=7, producer_epoch=0, base_sequence=sequence)
    request = produce_request(("t", 0), batch, timeout_ms=60_000)

    def heard(answer: Any) -> None:
        if answer is not None:
            answers.append(answer.responses[0].partition_responses[0])

    cluster.send(request, PRODUCE_VERSION, to=leader, timeout_ms=60_000, client=sender, heard=heard)
    cluster.run(100)
    return answers


def test_rule_119_a_retry_is_acknowledged_with_the_first_try_though_later_records_are_not_committed() -> None:
    cluster = Cluster(config={"replica.fetch.max.bytes": "1"})  # followers take one batch at a time
    cluster.create_topic("t")
    leader = cluster.leader("t")
    assert leader is not None
    followers = sorted({1, 2, 3} - {leader})
    for follower in followers:
        cluster.block(follower, leader)
    # On connections of their own: answers come in order.
    first = begin(cluster, leader, cluster.new_client("first"), 0)
    second = begin(cluster, leader, cluster.new_client("second"), 1)
    retry = begin(cluster, leader, cluster.new_client("retry"), 0)
    assert [first, second, retry] == [[], [], []]
    state = cluster.hosted("t")[leader].leader
    assert state is not None
    cluster.heal()
    scheduler = cluster.world.scheduler
    for _ in range(200_000):
        if state.high_watermark:
            break
        scheduler.run_until(scheduler.now_us + 10)
    for follower in followers:
        cluster.block(follower, leader)
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
        cluster.block(follower, leader)
    sender = cluster.new_client("sender")
    assert begin(cluster, leader, sender, 0) == []
    assert waiting(cluster, leader) == 1
    sender.run(sender.end_life)
    cluster.run(100)
    assert waiting(cluster, leader) == 0


def waiting(cluster: Cluster, leader: int) -> int:
    """Produces that wait on the leader."""
    return sum(isinstance(each, ProduceWait) for each in cluster.node(leader).components.purgatory.waiting())
