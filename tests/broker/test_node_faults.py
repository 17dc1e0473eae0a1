"""What nodes answer and do while something is wrong, in virtual time: found with faults on live clusters."""

from __future__ import annotations

import pytest

from tanist.client.admin import create_topics_request, new_topic
from tanist.events.replication import ReplicasWait
from tanist.events.storage import LogDirectoryFailed
from tanist.sim.world.scheduler import Process
from tanist.text import counted
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker.cluster_rig import Cluster, out_of_descriptors


def test_a_replica_in_a_failed_directory_is_answered_for_by_a_storage_error() -> None:
    """As at Apache (`HostedPartition.Offline`): "not leader" would send clients to a leader that is this very broker
    until the controller has heard, and says nothing of why."""
    cluster = Cluster(config={"min.insync.replicas": "2", "log.dirs": "/data,/more"})
    cluster.create_topic("t", assignment=[[1, 2, 3]] * 2)
    node = cluster.node(1)
    lost = next(n for n in range(2) if node.replicas.get("t", n).directory.path == "/more")
    cluster.host(1).disk.failing.append("/more")
    cluster.produce("t", [b"y"], partition=lost, to=1, timeout_ms=100)  # the disk's failure ends the connection
    cluster.run(2_000)
    assert cluster.leader("t", lost) in (2, 3)
    assert cluster.produce("t", [b"y"], partition=lost, to=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.fetch("t", partition=lost, to=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    partition = ListOffsetsPartition(partition_index=lost, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(partition,)),))
    (answer,) = cluster.ask(request, 7, to=1).topics
    assert answer.partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    # Of others, what it said before.
    assert cluster.produce("t", [b"y"], partition=9, to=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.produce("t", [b"y"], partition=1 - lost, to=2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_directory_that_fails_before_the_controller_knows_what_lies_there_takes_its_replicas_along() -> None:
    """The controller cannot know which replicas a failed directory takes if it never heard where they lie (rule 48):
    their leader would be one that answers nobody."""
    cluster = Cluster(config={"min.insync.replicas": "2", "log.dirs": "/data,/more"})
    controller = cluster.controller()
    leader = next(n for n in (3, 2) if n != controller)
    others = [n for n in (1, 2, 3) if n != leader]
    hosts = cluster.world.hosts
    cluster.slow(leader, controller, 1_000)
    cluster.create_topic("t", assignment=[[leader, *others]] * 4)
    node = cluster.node(leader)
    assert len(node.components.directory_assignments) == 4  # reported, for a second
    lost = [n for n in range(4) if node.replicas.get("t", n).directory.path == "/more"]
    hosts[leader].disk.failing.append("/more")
    cluster.produce("t", [b"y"], partition=lost[0], to=leader, timeout_ms=100)
    assert node.replicas.directories.offline_ids()
    assert len(node.components.directory_assignments) == 4  # and reported again if need be
    cluster.until(lambda: all(cluster.leader("t", partition) in others for partition in lost), within_ms=5_000)
    assert all(cluster.leader("t", partition) == leader for partition in range(4) if partition not in lost)
    cluster.until(lambda: not len(node.components.directory_assignments))


def test_a_replica_that_could_not_be_made_is_not_a_leader_that_answers_nobody() -> None:
    """Its directory fails as its log is made: of that replica the controller has never heard where it lies."""
    cluster = Cluster(config={"min.insync.replicas": "2", "log.dirs": "/data,/more"})
    cluster.create_topic("first", assignment=[[1, 2, 3]])
    cluster.host(1).disk.failing.append("/more")
    cluster.create_topic("t", assignment=[[1, 2, 3]] * 2)
    cluster.until(lambda: all(cluster.leader("t", partition) is not None for partition in range(2)), within_ms=3_000)
    node = cluster.node(1)
    assert node.replicas.offline_count == 1
    (lost,) = (n for n in range(2) if cluster.leader("t", n) != 1)
    cluster.until(lambda: cluster.produce("t", [b"x"], partition=lost).error_code == 0)
    cluster.until(lambda: not len(node.components.directory_assignments))
    assert cluster.produce("t", [b"x"], partition=lost, to=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_of_two_logs_of_one_partition_the_newer_is_kept() -> None:
    """A directory failed, the replica was taken away and given back, so it was made elsewhere; then the directory is
    mended. The older log must not be gone on with, nor lie there for ever."""
    cluster = Cluster(config={"log.dirs": "/data,/more", "file.delete.delay.ms": "1000"})
    cluster.create_topic("t", assignment=[[1, 2, 3]] * 2)
    newer = next(n for n in range(2) if cluster.node(3).replicas.get("t", n).directory.path == "/data")
    cluster.produce("t", [b"x"], partition=newer)
    cluster.run(500)
    host, folder = cluster.host(3), f"t-{newer}"
    of_old = {path: host.disk.content(path) for path in host.disk.paths() if path.startswith(f"/data/{folder}/")}
    cluster.produce("t", [b"y"], partition=newer)
    cluster.run(500)
    host.kill()
    view = host.disk.view(Process("a client"))
    view.make_directory(f"/more/{folder}")
    for path, content in of_old.items():
        view.write_file(path.replace("/data/", "/more/"), content)
    host.start()
    cluster.until(lambda: 3 in cluster.hosted("t", newer))
    hosted = cluster.node(3).replicas.get("t", newer)
    assert (hosted.directory.path, hosted.log.log_end_offset) == ("/data", 2)
    cluster.run(70_000)
    assert not [path for path in host.disk.paths() if path.startswith(f"/more/{folder}")]
    cluster.until(lambda: len(cluster.hosted("t", newer)[cluster.leader("t", newer) or 0].leader.isr) == 3)


@pytest.mark.parametrize(
    "flush", [{"log.flush.interval.messages": "2"}, {"log.flush.interval.ms": "500"}], ids=["of a turn", "of its time"]
)
def test_a_flush_that_cannot_begin_takes_its_directory_offline_and_nothing_else(flush: dict[str, str]) -> None:
    """The epochs are written before the files are synced: here only that fails."""
    cluster = Cluster(config={"log.dirs": "/data,/more", **flush})
    cluster.create_topic("t", assignment=[[1, 2, 3]] * 2)
    node, host = cluster.node(1), cluster.host(1)
    lost = next(n for n in range(2) if node.replicas.get("t", n).directory.path == "/more")
    cluster.produce("t", [b"x"], partition=lost, to=1)
    host.disk.failing.append(f"/more/t-{lost}/leader-epoch-checkpoint")
    cluster.produce("t", [b"y"], partition=lost, to=1, timeout_ms=100)
    cluster.until(lambda: cluster.leader("t", lost) in (2, 3))
    assert cluster.produce("t", [b"y"], partition=lost, to=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.produce("t", [b"y"], partition=1 - lost, to=1).error_code == 0
    assert host.up


def test_new_replicas_wait_while_too_many_files_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(config={"min.insync.replicas": "2"})
    node, crowded = cluster.node(1), [True]
    monkeypatch.setattr(node.context.disk, "crowded", lambda: crowded[0])
    for name in ("t", "gone"):
        request = create_topics_request(new_topic(name, partitions=2, replication_factor=3))
        cluster.ask(request, 7, to=cluster.controller())
    cluster.run(3_000)
    assert set(cluster.hosted("t")) == {2, 3}
    assert not node.replicas.offline_count
    cluster.delete_topic("gone")
    crowded[0] = False
    cluster.until(lambda: set(cluster.hosted("t")) == {1, 2, 3})
    assert node.replicas.get("gone", 0) is None
    assert cluster.produce("t", [b"x"], to=cluster.leader("t") or 0).error_code == ErrorCode.NONE
    cluster.until(lambda: cluster.values("t", to=1) == [b"x"] or cluster.leader("t") != 1)


def test_a_flush_without_a_descriptor_ends_the_node_and_is_not_taken_for_a_failed_disk() -> None:
    cluster = Cluster(config={"log.dirs": "/data,/more", "log.flush.interval.messages": "2"})
    cluster.create_topic("t", assignment=[[1, 2, 3]] * 2)
    node, host = cluster.node(1), cluster.host(1)
    lost = next(n for n in range(2) if node.replicas.get("t", n).directory.path == "/more")
    assert cluster.produce("t", [b"x"], partition=lost, to=1).error_code == 0
    enough = out_of_descriptors(host, f"/more/t-{lost}/leader-epoch-checkpoint")
    cluster.produce("t", [b"y"], partition=lost, to=1, timeout_ms=100)
    cluster.until(lambda: not host.up)
    assert host.fatal == "files in /more could not be opened: Too many open files"
    assert node.replicas.directories.offline_ids() == ()
    assert cluster.seen(LogDirectoryFailed) == []
    enough()
    host.start()
    cluster.until(lambda: set(cluster.hosted("t", lost)) == {1, 2, 3})
    assert cluster.node(1).replicas.get("t", lost).directory.path == "/more"
    assert cluster.values("t", partition=lost)[:1] == [b"x"]


def test_a_start_without_descriptors_ends_and_says_how_many_logs_it_had() -> None:
    cluster = Cluster(config={"log.dirs": "/data,/more"})
    cluster.create_topic("t", assignment=[[1, 2, 3]] * 4)
    host = cluster.host(1)
    here = len(cluster.node(1).replicas.directories[0].logs)
    host.kill()
    enough = out_of_descriptors(host, "/more/t-")
    host.start()
    cluster.until(lambda: not host.up)
    assert here > 0
    assert host.fatal == f"only {counted(here, 'log')} could be opened: Too many open files"
    assert cluster.seen(LogDirectoryFailed) == []
    enough()
    host.start()
    cluster.until(lambda: set(cluster.hosted("t")) == {1, 2, 3})


def test_a_new_replica_for_which_there_was_no_descriptor_waits() -> None:
    cluster = Cluster(config={"min.insync.replicas": "2"})
    enough = out_of_descriptors(cluster.host(1), "/data/t-0/0000")
    cluster.create_topic("t", assignment=[[2, 1, 3]])
    cluster.run(3_000)
    assert set(cluster.hosted("t")) == {2, 3}
    assert not cluster.node(1).replicas.offline_count
    assert ReplicasWait("t-0") in cluster.seen(ReplicasWait)
    enough()
    cluster.until(lambda: set(cluster.hosted("t")) == {1, 2, 3})
    assert cluster.host(1).up
