"""Rules that only a whole node keeps: its timers, its files, its answers when roles change."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tanist.broker.replication.replicas import Replicas
from tanist.client.admin import ElectionType, create_topics_request, elect_request, new_topic, reassign_request
from tanist.replica.membership import IsrMembership
from tanist.replica.partition import Partition
from tanist.sim.world.world import CONTROLLER_PORT
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.cluster_rig import Cluster

HIGH_WATERMARKS = "/data/replication-offset-checkpoint"


def two_that_do_not_control(cluster: Cluster) -> tuple[int, int]:
    controller = cluster.controller()
    first, second, *_ = (node_id for node_id in cluster.world.hosts if node_id != controller)
    return first, second


def test_rule_10_members_are_looked_at_every_half_lag_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looks_ms: list[int] = []
    look_for_real = IsrMembership.check_lag

    def look(leader: IsrMembership, now_ms: int) -> Any:
        looks_ms.append(now_ms)
        return look_for_real(leader, now_ms)

    monkeypatch.setattr(IsrMembership, "check_lag", look)
    cluster = Cluster(config={"replica.lag.time.max.ms": "8000"})
    leader, follower = two_that_do_not_control(cluster)
    cluster.create_topic("t", assignment=[[leader, follower]])
    cluster.cut(leader, follower)
    assert cluster.produce("t", [b"x"], acks=1).error_code == 0
    cluster.until(lambda: cluster.hosted("t")[leader].leader.isr == (leader,))
    assert {later - earlier for earlier, later in pairwise(looks_ms)} == {4_000}
    assert len(looks_ms) >= 3


def test_rule_117_high_watermarks_are_written_down_every_five_seconds_and_believed_after_a_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written_ms: list[int] = []
    believed: list[int] = []
    checkpoint_for_real, restore_for_real = Replicas.checkpoint, Partition.restore_high_watermark

    def checkpoint(replicas: Replicas) -> None:
        written_ms.append(cluster.world.now_ms)
        checkpoint_for_real(replicas)

    def restore(replica: Partition, checkpointed: int) -> None:
        believed.append(checkpointed)
        restore_for_real(replica, checkpointed)

    monkeypatch.setattr(Replicas, "checkpoint", checkpoint)
    monkeypatch.setattr(Partition, "restore_high_watermark", restore)
    cluster = Cluster(nodes=1)
    cluster.create_topic("t", factor=1)
    cluster.produce("t", [b"x"] * 3)
    cluster.run(11_000)
    assert [later - earlier for earlier, later in pairwise(written_ms)] == [5_000]
    disk = cluster.host(1).disk
    assert disk.content(HIGH_WATERMARKS) == b"0\n1\nt 0 3\n"
    cluster.produce("t", [b"x"] * 2)
    cluster.host(1).kill()
    cluster.host(1).start()
    cluster.until(lambda: cluster.leader("t") == 1)
    assert believed == [0, 3]


def test_rule_119_a_produce_that_waits_hears_that_leadership_is_lost() -> None:
    cluster = Cluster(config={"min.insync.replicas": "2"})
    leader, follower = two_that_do_not_control(cluster)
    cluster.create_topic("t", assignment=[[leader, follower]])
    assert cluster.ask(reassign_request("t", 0, (follower, leader)), 0).error_code == 0
    cluster.cut(leader, follower)
    records = encode_batch([NewRecord(timestamp=cluster.client.clock.wall_ms(), key=None, value=b"x")])
    data = PartitionProduceData(index=0, records=bytes(records))
    request = ProduceRequest(
        acks=-1, timeout_ms=60_000, topic_data=(TopicProduceData(name="t", partition_data=(data,)),)
    )
    waiting = cluster.send(request, 9, to=leader)
    cluster.until(lambda: cluster.hosted("t")[leader].log.log_end_offset == 1)
    cluster.run(1_000)
    assert waiting == []
    elected = cluster.ask(elect_request(ElectionType.PREFERRED, "t"), 2)
    assert elected.replica_election_results[0].partition_result[0].error_code == 0
    cluster.until(lambda: bool(waiting), within_ms=1_000)
    assert waiting[0].responses[0].partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.host(leader).up


@pytest.mark.parametrize("acks", [-2, 2, 300])
def test_rule_120_other_acks_are_refused_on_the_wire(acks: int) -> None:
    cluster = Cluster(nodes=1)
    cluster.create_topic("t", factor=1)
    assert cluster.produce("t", [b"x"], acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert cluster.hosted("t")[1].log.log_end_offset == 0


def test_rule_149_who_waits_for_a_commit_hears_that_the_controller_has_changed() -> None:
    cluster = Cluster()
    controller = cluster.controller()
    cluster.cut(1, 2, 3)
    cluster.cut(2, 3)
    request = create_topics_request(new_topic("t", partitions=1, replication_factor=1), timeout_ms=60_000)
    waiting = cluster.send(request, 7, to=controller, port=CONTROLLER_PORT)
    cluster.run(1_000)
    assert waiting == []  # decided, and not committed
    cluster.until(lambda: bool(waiting), within_ms=5_000)
    assert waiting[0].topics[0].error_code == ErrorCode.NOT_CONTROLLER
    cluster.heal()
    cluster.until(cluster.world.ready)
    cluster.run(2_000)
    assert all("t" not in node.metadata.image.topic_ids for node in cluster.world.nodes())
