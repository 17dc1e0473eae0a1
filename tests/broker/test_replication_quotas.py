"""Replication throttles (KIP-73): a reassignment takes as long as its rate says, by either side's, and ends."""

from __future__ import annotations

import pytest

from tanist.client.admin import reassign_request
from tanist.events.replication import IsrChanged
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tests.broker.cluster_rig import Cluster

TOPIC, BROKER = 2, 4
RECORDS, RECORD_BYTES = 40, 10_000
RATE = 20_000
"""400 kB: ten seconds are free, as the rate is that of ten seconds, and the rest takes ten."""


def loaded() -> Cluster:
    """A topic on broker 1, to be copied to 2 in pieces."""
    cluster = Cluster(nodes=3, config={"replica.fetch.max.bytes": "15000"})
    cluster.create_topic("t", assignment=[[1]])
    for number in range(RECORDS):
        assert cluster.produce("t", [b"%d" % number + bytes(RECORD_BYTES)]).error_code == 0
    return cluster


def move(cluster: Cluster, name: str, replicas: tuple[int, ...]) -> None:
    assert cluster.ask(reassign_request(name, 0, replicas), 0).error_code == 0


def move_ms(cluster: Cluster) -> int:
    """Add 2 as a replica; the virtual time until it is in sync and nothing is pending."""
    began_ms = cluster.world.now_ms
    move(cluster, "t", (1, 2))

    def moved() -> bool:
        state = cluster.partition("t")
        return set(state.isr) == {1, 2} and not state.reassigning

    cluster.until(moved, within_ms=90_000)
    return cluster.world.now_ms - began_ms


def test_without_a_rate_it_is_fast() -> None:
    cluster = loaded()
    cluster.configure(TOPIC, "t", {"leader.replication.throttled.replicas": "0:1"})
    assert move_ms(cluster) < 3_000


@pytest.mark.parametrize(("side", "throttled", "replica"), [("leader", 1, "0:1"), ("follower", 2, "0:2")])
def test_a_throttled_move_is_slow_and_ends(side: str, throttled: int, replica: str) -> None:
    cluster = loaded()
    cluster.configure(TOPIC, "t", {f"{side}.replication.throttled.replicas": replica})
    cluster.configure(BROKER, str(throttled), {f"{side}.replication.throttled.rate": str(RATE)})
    assert 8_000 <= move_ms(cluster) < 30_000
    assert len(cluster.values("t")) == RECORDS


@pytest.mark.parametrize("replicas", ["1:1", "0:3"])
def test_replicas_that_are_not_named_are_not_throttled(replicas: str) -> None:
    cluster = loaded()
    cluster.configure(TOPIC, "t", {"leader.replication.throttled.replicas": replicas})
    cluster.configure(BROKER, "1", {"leader.replication.throttled.rate": str(RATE)})
    assert move_ms(cluster) < 3_000


def test_a_replica_in_sync_is_never_throttled() -> None:
    cluster = Cluster(nodes=3)
    cluster.create_topic("t", assignment=[[1, 2]], config={"min.insync.replicas": "2"})
    for side in ("leader", "follower"):
        cluster.configure(TOPIC, "t", {f"{side}.replication.throttled.replicas": "*"})
        cluster.configure(BROKER, "", {f"{side}.replication.throttled.rate": "1"})
    began_ms = cluster.world.now_ms
    for number in range(20):
        assert cluster.produce("t", [b"%d" % number + bytes(RECORD_BYTES)]).error_code == 0
    assert cluster.world.now_ms - began_ms < 2_000


def test_a_throttled_fetch_that_waits_is_answered_when_its_follower_joins_the_isr() -> None:
    """Below min ISR the high watermark stands still, so a follower joins as soon as it has reached it, far from the end
    of the log. A member is not throttled: without an answer at once the next check of the lag takes it out again."""
    cluster = Cluster(nodes=3)
    cluster.create_topic("t", assignment=[[1, 2]], config={"min.insync.replicas": "2"})
    cluster.create_topic("other", assignment=[[1]])
    assert cluster.produce("t", [b"committed"]).error_code == 0
    assert cluster.produce("other", [bytes(RECORD_BYTES)]).error_code == 0
    cluster.host(2).kill()
    leader = cluster.hosted("t")[1].leader
    assert leader is not None
    cluster.until(lambda: leader.isr == (1,))
    for topic in ("t", "other"):
        cluster.configure(TOPIC, topic, {"leader.replication.throttled.replicas": "*"})
    cluster.configure(BROKER, "1", {"leader.replication.throttled.rate": "1"})
    assert cluster.produce("t", [b"and more"], acks=1).error_code == 0
    move(cluster, "other", (1, 3))
    cluster.until(lambda: cluster.hosted("other")[3].log.log_end_offset == 1)  # with that the rate is used up for hours
    cluster.heard.events.clear()
    cluster.host(2).start()
    cluster.until(lambda: set(leader.isr) == {1, 2})
    cluster.until(lambda: leader.high_watermark == 2, within_ms=400)
    assert [each.partition for each in cluster.seen(IsrChanged)].count("t-0") == 1


@pytest.mark.parametrize("min_bytes", [1, 200])
def test_records_do_not_wake_a_throttled_follower_that_has_no_session(min_bytes: int) -> None:
    cluster = Cluster(nodes=3)
    cluster.create_topic("t", assignment=[[1, 2]], config={"min.insync.replicas": "1"})
    cluster.host(2).kill()
    leader = cluster.hosted("t")[1].leader
    assert leader is not None
    cluster.until(lambda: leader.isr == (1,))
    cluster.configure(TOPIC, "t", {"leader.replication.throttled.replicas": "*"})
    cluster.configure(BROKER, "1", {"leader.replication.throttled.rate": "1"})
    cluster.node(1).components.quotas.leader.record(1 << 20)  # with that the rate is used up for hours
    part = FetchPartition(partition=0, current_leader_epoch=-1, last_fetched_epoch=-1, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=2,
        max_wait_ms=600_000,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=(FetchTopic(topic="t", partitions=(part,)),),
    )
    answers = cluster.send(request, 12, to=1, timeout_ms=600_000, client=cluster.new_client("follower"))
    cluster.run(100)
    for number in range(10):
        assert cluster.produce("t", [b"%d" % number]).error_code == 0
    assert answers == []
    cluster.configure(BROKER, "1", {"leader.replication.throttled.rate": str(1 << 30)})
    assert cluster.produce("t", [b"and another"]).error_code == 0
    cluster.until(lambda: bool(answers))
    assert answers[0].responses[0].partitions[0].error_code == 0
