"""Logs that the last run has left and that a start does not find: such a replica is never taken for a complete one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tanist.events.metadata import MetadataLogMissing, QuorumStateMissing, UncleanElection
from tanist.sim.world.scheduler import Process
from tanist.sim.world.world import Host
from tests.broker.cluster_rig import Cluster

OLD = [b"old %d" % n for n in range(10)]
NEW = [b"new %d" % n for n in range(5)]
POINTS = "/data/recovery-point-offset-checkpoint"


def last_in_sync(config: dict[str, str] | None = None) -> Cluster:
    """Node 3 was the last member of the ISR, and has stopped cleanly; node 2 lacks the last records."""
    cluster = Cluster(config={"min.insync.replicas": "1", "replica.lag.time.max.ms": "1000", **(config or {})})
    cluster.create_topic("t", assignment=[[3, 2]])
    cluster.create_topic("other", assignment=[[3]])
    assert cluster.produce("t", OLD, to=3).error_code == 0
    assert cluster.produce("other", OLD, to=3).error_code == 0
    cluster.until(lambda: len(cluster.hosted("t")) == 2)
    second = cluster.stop(2)
    assert cluster.produce("t", NEW, to=3).error_code == 0
    second_needed = cluster.stop(3)
    assert "brokerEpoch" in second_needed.disk.content("/data/.kafka_cleanshutdown").decode()
    second.start()
    cluster.until(cluster.world.ready)
    assert cluster.leader("t") is None
    return cluster


def remove(*paths: str) -> Callable[[Host], None]:
    def act(host: Host) -> None:
        view = host.disk.view(Process("operator"))
        for path in paths:
            view.remove(path)

    return act


def empty(path: str) -> Callable[[Host], None]:
    return lambda host: host.disk.view(Process("operator")).write_file(path, b"")


def damage(path: str) -> Callable[[Host], None]:
    return lambda host: host.disk.view(Process("operator")).write_file(path, b"0\n7\nt 0 15\n")


def reports(cluster: Cluster, level: str) -> list[str]:
    return [line for line in cluster.log if f" {level} " in line]


LOSSES = {
    "the folder is gone": remove("/data/t-0"),
    "the segment is gone": remove("/data/t-0/00000000000000000000.log"),
    "the segment is empty": empty("/data/t-0/00000000000000000000.log"),
    "the folder and the list of logs are gone": remove("/data/t-0", POINTS),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_log_that_a_clean_stop_has_left_and_that_is_gone_makes_nobody_eligible(loss: str) -> None:
    cluster = last_in_sync()
    host = cluster.host(3)
    LOSSES[loss](host)
    cluster.log.clear()
    host.start()
    cluster.until(lambda: cluster.leader("t") is not None, within_ms=60_000)
    assert cluster.node(3).lifecycle.previous_broker_epoch == -1
    assert cluster.leader("t") == 2
    assert cluster.values("t") == OLD, "the best of what is left"
    assert "t-0" in [each.partition for each in cluster.seen(UncleanElection)]
    assert any("t-0" in line for line in reports(cluster, "ERROR")) or "list" in loss
    cluster.until(lambda: cluster.leader("other") == 3)
    assert cluster.values("other") == OLD, "of a log that is there nothing is lost"


def test_first_segments_that_are_gone_are_no_records_that_retention_has_deleted() -> None:
    """As the leader, this replica would have the others delete what it lacks."""
    cluster = last_in_sync({"log.roll.ms": "1"})
    host = cluster.host(3)
    view = host.disk.view(Process("operator"))
    segments = sorted(name for name in view.list("/data/t-0") if name.endswith(".log"))
    assert len(segments) > 1
    view.remove(f"/data/t-0/{segments[0]}")
    cluster.log.clear()
    host.start()
    cluster.until(lambda: cluster.leader("t") is not None, within_ms=60_000)
    assert cluster.node(3).lifecycle.previous_broker_epoch == -1
    assert any("t-0: a part of its log is gone" in line for line in reports(cluster, "ERROR"))


def test_an_unclean_stop_says_which_log_is_gone() -> None:
    cluster = last_in_sync()
    host = cluster.host(3)
    remove("/data/t-0", "/data/.kafka_cleanshutdown")(host)
    cluster.log.clear()
    host.start()
    cluster.until(lambda: cluster.leader("t") == 2, within_ms=60_000)
    assert any("t-0" in line for line in reports(cluster, "ERROR"))


def test_a_damaged_list_of_logs_vouches_for_none() -> None:
    cluster = last_in_sync()
    host = cluster.host(3)
    damage(POINTS)(host)
    host.start()
    cluster.until(lambda: cluster.leader("t") is not None, within_ms=60_000)
    assert cluster.node(3).lifecycle.previous_broker_epoch == -1
    assert cluster.values("t") == OLD + NEW


def test_logs_that_are_there_are_a_clean_start_whatever_else_was_deleted_before() -> None:
    """Of a topic that was deleted, and of one that was moved to the other directory, nothing is missing."""
    cluster = Cluster(config={"min.insync.replicas": "1", "log.dirs": "/data/1,/data/2"})
    cluster.create_topic("t", partitions=4)
    for partition in range(4):
        assert cluster.produce("t", OLD, partition=partition).error_code == 0
    host = cluster.stop(3)
    view = host.disk.view(Process("operator"))
    there = next(name for name in view.list("/data/2") if name.startswith("t-"))
    view.rename(f"/data/2/{there}", f"/data/1/{there}")
    host.start()
    cluster.until(cluster.world.ready)
    assert cluster.node(3).lifecycle.previous_broker_epoch >= 0
    assert not reports(cluster, "ERROR")


def test_a_folder_that_has_lost_its_id_is_the_replicas_folder_under_the_new_one() -> None:
    """As Apache Kafka, a broker reports where its replicas are whenever the metadata names another directory."""
    cluster = Cluster(config={"min.insync.replicas": "1"})
    cluster.create_topic("t", assignment=[[3, 2]])
    assert cluster.produce("t", OLD, to=3).error_code == 0
    stopped = [cluster.stop(node_id) for node_id in (2, 3)]
    for host in stopped:
        lines = host.disk.content("/data/meta.properties").split(b"\n")
        kept = b"\n".join(line for line in lines if not line.startswith(b"directory.id="))
        host.disk.view(Process("operator")).write_file("/data/meta.properties", kept)
        host.start()
    cluster.until(lambda: cluster.leader("t") is not None, within_ms=30_000)
    assert cluster.values("t") == OLD
    cluster.until(lambda: len(cluster.hosted("t")) == 2)
    assert not reports(cluster, "ERROR")


@pytest.mark.parametrize("files", [["/data/__cluster_metadata-0/quorum-state"], ["/data/__cluster_metadata-0"]])
def test_a_member_of_the_quorum_says_what_it_has_forgotten(files: list[str]) -> None:
    cluster = Cluster()
    cluster.create_topic("t")
    host = cluster.stop(3)
    remove(*files)(host)
    cluster.log.clear()
    host.start()
    cluster.until(cluster.world.ready)
    assert [files[0] in line for line in reports(cluster, "WARN") if "is gone" in line] == [True]


def test_a_new_node_has_forgotten_nothing() -> None:
    cluster = Cluster(nodes=1)
    assert not [*cluster.seen(QuorumStateMissing), *cluster.seen(MetadataLogMissing)]


def test_a_log_directory_that_is_a_new_one_is_reported() -> None:
    cluster = Cluster(config={"log.dirs": "/data/1,/data/2"})
    cluster.create_topic("t", partitions=4)
    host = cluster.stop(3)
    host.replace_disk("/data/2")
    cluster.log.clear()
    host.start()
    cluster.until(lambda: all(3 in cluster.hosted("t", index) for index in range(4)))
    assert len([line for line in reports(cluster, "ERROR") if "empty logs take their place" in line]) == 1
