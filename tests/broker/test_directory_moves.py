"""Replicas that move between the log directories of a broker (KIP-113, KIP-858)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.storage.cleaning import LogCleaner
from tanist.client.admin import BROKER_RESOURCE, move_logs_request
from tanist.events.replication import ReplicaMoved, ReplicaMoveEnded, ReplicaMoves
from tanist.log.directory import LogDirectory
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from tests.broker.cluster_rig import Cluster

FIRST, SECOND = "/data/1", "/data/2"
VALUES = [b"value %03d" % n for n in range(40)]
QUICK = {"log.segment.delete.delay.ms": "1000", "replica.fetch.max.bytes": "65536"}
SLOW = "2000"
"""Bytes a second."""
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


def cluster_of(nodes: int = 1, config: dict[str, str] | None = None, **topic: Any) -> Cluster:
    """A topic with forty batches on each node."""
    cluster = Cluster(nodes=nodes, directories=2, config={**QUICK, **(config or {})})
    cluster.create_topic("t", factor=nodes, config=topic.get("configs"))
    for value in VALUES:
        assert cluster.produce("t", [value]).error_code == 0
    return cluster


def elsewhere(hosted: HostedPartition) -> str:
    return SECOND if hosted.directory.path == FIRST else FIRST


def ask(cluster: Cluster, path: str, *, to: int = 1, topic: str = "t", partition: int = 0) -> int:
    """AlterReplicaLogDirs of one replica: its error."""
    answer = cluster.ask(move_logs_request({(topic, partition): path}), 2, to=to)
    [result] = [each for each in answer.results if each.topic_name == topic]
    [found] = result.partitions
    assert found.partition_index == partition
    error: int = found.error_code
    return error


def described(cluster: Cluster, *, to: int = 1) -> dict[str, list[tuple[int, bool]]]:
    """By directory: (offset lag, is future) of the replicas of `t`."""
    answer = cluster.ask(DescribeLogDirsRequest(topics=None), 4, to=to)
    return {
        each.log_dir: [
            (found.offset_lag, found.is_future_key)
            for topic in each.topics
            if topic.name == "t"
            for found in topic.partitions
        ]
        for each in answer.results
    }


def folders(cluster: Cluster, path: str, node_id: int = 1) -> list[str]:
    """The folders of `t` in a log directory, without what makes them unique."""
    view = cluster.host(node_id).disk
    names = {each[len(path) + 1 :].split("/")[0] for each in view.paths() if each.startswith(f"{path}/t-0")}
    return sorted(f"{name.split('.')[0]}{name[name.rfind('-') :]}" if "." in name else name for name in names)


def assigned(cluster: Cluster, node_id: int = 1) -> Any:
    """The directory in which the controller takes the replica to be."""
    image = cluster.node(node_id).metadata.image
    return image.topics[image.topic_ids["t"]].partitions[0].directory_of(node_id)


def moved(cluster: Cluster, path: str, node_id: int = 1) -> bool:
    return cluster.hosted("t")[node_id].directory.path == path


def failing(cluster: Cluster, path: str, node_id: int = 1) -> None:
    cluster.host(node_id).disk.failing.append(f"{path}/")


def test_a_leader_moves_and_goes_on_leading_in_its_epoch() -> None:
    cluster = cluster_of()
    hosted = cluster.hosted("t")[1]
    source, target, epoch, before = hosted.directory.path, elsewhere(hosted), hosted.leader_epoch, hosted.log
    assert ask(cluster, target) == 0
    cluster.until(lambda: moved(cluster, target))
    assert cluster.hosted("t")[1] is hosted
    assert hosted.log is not before
    assert hosted.leader is not None
    assert hosted.leader_epoch == epoch
    assert hosted.leader.log is hosted.log is hosted.replica.log
    assert hosted.log.epochs.entries == before.epochs.entries
    assert assigned(cluster) == hosted.directory.directory_id
    assert cluster.values("t") == VALUES
    assert cluster.produce("t", [b"more"]).error_code == 0
    assert cluster.values("t") == [*VALUES, b"more"]
    assert folders(cluster, target) == ["t-0"]
    cluster.until(lambda: folders(cluster, source) == [])
    assert [(each.source, each.target) for each in cluster.seen(ReplicaMoved)] == [(source, target)]


@pytest.mark.parametrize("stop", [Cluster.stop, lambda cluster, node_id: cluster.host(node_id).kill()])
def test_after_a_stop_the_replica_is_where_it_has_moved_to(stop: Callable[[Cluster, int], object]) -> None:
    cluster = cluster_of()
    target = elsewhere(cluster.hosted("t")[1])
    assert ask(cluster, target) == 0
    cluster.until(lambda: moved(cluster, target))
    assert cluster.produce("t", [b"more"]).error_code == 0
    stop(cluster, 1)
    cluster.host(1).start()
    cluster.until(lambda: cluster.leader("t") == 1)
    assert moved(cluster, target)
    assert cluster.values("t") == [*VALUES, b"more"]


def test_a_power_loss_right_after_the_move_costs_nothing_that_was_synced() -> None:
    cluster = cluster_of(configs={"flush.messages": "1"})
    target = elsewhere(cluster.hosted("t")[1])
    assert ask(cluster, target) == 0
    cluster.until(lambda: moved(cluster, target))
    assert cluster.produce("t", [b"more"]).error_code == 0
    cluster.host(1).kill()
    cluster.host(1).disk.lose_power()
    cluster.host(1).start()
    cluster.until(lambda: cluster.leader("t") == 1, within_ms=60_000)
    assert cluster.values("t") == [*VALUES, b"more"]


def test_describe_tells_of_the_future_log_and_the_throttle_holds_it_back() -> None:
    cluster = cluster_of()
    cluster.configure(BROKER_RESOURCE, "1", {RATE: SLOW})
    hosted = cluster.hosted("t")[1]
    source, target = hosted.directory.path, elsewhere(hosted)
    for _ in range(60):
        assert cluster.produce("t", [bytes(9_000)]).error_code == 0
    assert ask(cluster, target) == 0
    cluster.run(2_000)
    known = described(cluster)
    assert known[source] == [(0, False)]
    [(lag, is_future)] = known[target]
    assert is_future
    assert 0 < lag < 100
    assert folders(cluster, target) == ["t-0-future"]
    cluster.run(3_000)
    assert described(cluster) == known, "the bytes of minutes were copied in the first step"
    cluster.configure(BROKER_RESOURCE, "1", {RATE: None})
    cluster.until(lambda: moved(cluster, target))
    assert described(cluster) == {source: [], target: [(0, False)]}


def test_what_is_produced_while_the_copy_is_made_is_there() -> None:
    cluster = cluster_of(nodes=3)
    leader = cluster.leader("t")
    assert leader is not None
    targets = {node_id: elsewhere(hosted) for node_id, hosted in cluster.hosted("t").items()}
    for node_id, target in targets.items():
        assert ask(cluster, target, to=node_id) == 0
    values = list(VALUES)
    while not all(moved(cluster, target, node_id) for node_id, target in targets.items()):
        values.append(b"late %d" % len(values))
        assert cluster.produce("t", [values[-1]]).error_code == 0
    assert len(values) > len(VALUES)
    values.append(b"after")
    assert cluster.produce("t", [values[-1]]).error_code == 0
    assert cluster.values("t") == values
    state = cluster.hosted("t")[leader].leader
    assert state is not None
    assert set(state.isr) == {1, 2, 3}


def stuck(cluster: Cluster) -> tuple[HostedPartition, str]:
    """A move that has begun and does not end: all is copied but what does not fit into the rate."""
    cluster.configure(BROKER_RESOURCE, "1", {RATE: "1"})
    for _ in range(60):
        assert cluster.produce("t", [bytes(9_000)]).error_code == 0
    hosted = cluster.hosted("t")[1]
    target = elsewhere(hosted)
    assert ask(cluster, target) == 0
    cluster.run(500)
    assert folders(cluster, target) == ["t-0-future"]
    return hosted, target


@pytest.mark.parametrize("stop", [Cluster.stop, lambda cluster, node_id: cluster.host(node_id).kill()])
def test_a_start_goes_on_with_a_move(stop: Callable[[Cluster, int], object]) -> None:
    cluster = cluster_of()
    hosted, target = stuck(cluster)
    stop(cluster, 1)
    cluster.host(1).start()
    cluster.until(lambda: cluster.leader("t") == 1)
    again = cluster.hosted("t")[1]
    assert again.directory.path == hosted.directory.path
    assert len(cluster.seen(ReplicaMoves)) == 2
    [(_, log)] = cluster.node(1).replicas.directories[target == SECOND].futures.items()
    assert log.log_end_offset > 0, "nothing is copied twice"
    cluster.configure(BROKER_RESOURCE, "1", {RATE: None})
    cluster.until(lambda: moved(cluster, target))
    assert len(cluster.values("t")) == 100


def test_asked_for_its_own_directory_a_replica_stays() -> None:
    cluster = cluster_of()
    hosted, target = stuck(cluster)
    assert ask(cluster, target) == 0, "a second time is nothing new"
    assert ask(cluster, hosted.directory.path) == 0
    assert [each.target for each in cluster.seen(ReplicaMoveEnded)] == [target]
    cluster.until(lambda: folders(cluster, target) == [])
    assert ask(cluster, hosted.directory.path) == 0
    assert described(cluster)[target] == []
    assert len(cluster.seen(ReplicaMoves)) == 1


def test_with_its_topic_the_copy_goes() -> None:
    cluster = cluster_of()
    _, target = stuck(cluster)
    cluster.delete_topic("t")
    cluster.until(lambda: folders(cluster, FIRST) == folders(cluster, SECOND) == [])
    assert [each.target for each in cluster.seen(ReplicaMoveEnded)] == [target]
    assert len(cluster.node(1).components.directory_assignments) == 0


def test_a_topic_that_goes_while_the_broker_is_down_takes_the_copy_along() -> None:
    cluster = cluster_of(nodes=3)
    _, target = stuck(cluster)
    cluster.host(1).kill()
    cluster.until(
        lambda: cluster.leader("t") in (2, 3) and any(node.quorum.raft.is_leader for node in cluster.world.nodes())
    )
    cluster.delete_topic("t")
    cluster.host(1).start()
    cluster.until(cluster.world.ready)
    cluster.until(lambda: folders(cluster, FIRST) == folders(cluster, SECOND) == [])
    assert target in (FIRST, SECOND)


def test_where_the_copy_goes_the_disk_fails() -> None:
    cluster = cluster_of(config={"metadata.log.dir": "/data/1"})
    cluster.create_topic("u", factor=1)  # so that one of the topics is in each
    both = (cluster.hosted("t")[1], cluster.hosted("u")[1])
    hosted = next(each for each in both if each.directory.path == FIRST)
    epoch = hosted.leader_epoch
    cluster.configure(BROKER_RESOURCE, "1", {RATE: "1"})
    assert ask(cluster, SECOND, topic=hosted.topic) == 0
    cluster.run(200)
    failing(cluster, SECOND)
    cluster.configure(BROKER_RESOURCE, "1", {RATE: None})
    assert cluster.produce(hosted.topic, [b"more"]).error_code == 0
    cluster.until(lambda: cluster.node(1).replicas.directories[1].failed is not None)
    assert [each.target for each in cluster.seen(ReplicaMoveEnded)] == [SECOND]
    assert not hosted.stale
    assert hosted.leader_epoch == epoch
    assert cluster.produce(hosted.topic, [b"more"]).error_code == 0
    assert ask(cluster, SECOND, topic=hosted.topic) == ErrorCode.KAFKA_STORAGE_ERROR


def test_where_the_replica_is_the_disk_fails_and_the_copy_waits() -> None:
    cluster = cluster_of(nodes=3)
    cluster.configure(BROKER_RESOURCE, "1", {RATE: "1"})
    hosted = cluster.hosted("t")[1]
    if hosted.directory.path == FIRST:
        assert ask(cluster, SECOND) == 0
        cluster.configure(BROKER_RESOURCE, "1", {RATE: None})
        cluster.until(lambda: moved(cluster, SECOND))
        cluster.configure(BROKER_RESOURCE, "1", {RATE: "1"})
    for _ in range(60):
        assert cluster.produce("t", [bytes(9_000)]).error_code == 0
    cluster.until(lambda: hosted.log.log_end_offset == 100)
    assert ask(cluster, FIRST) == 0
    cluster.run(300)
    failing(cluster, SECOND)
    assert cluster.produce("t", [b"more"], acks=1) is not None
    cluster.until(lambda: cluster.leader("t") in (2, 3) and hosted.stale)
    assert "t-0-future" in folders(cluster, FIRST)
    cluster.stop(1)
    cluster.host(1).disk.failing.clear()
    cluster.host(1).start()
    cluster.until(cluster.world.ready)
    cluster.until(lambda: 1 in cluster.hosted("t"))
    cluster.configure(BROKER_RESOURCE, "1", {RATE: None})
    cluster.until(lambda: moved(cluster, FIRST))
    assert len(cluster.values("t")) >= 100


def test_errors_are_those_of_apache_kafka() -> None:
    cluster = cluster_of()
    target = elsewhere(cluster.hosted("t")[1])
    assert ask(cluster, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    assert ask(cluster, target, partition=7) == ErrorCode.REPLICA_NOT_AVAILABLE
    assert ask(cluster, target, topic="x" * 220) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_replica_that_is_not_here_yet_is_made_where_it_was_to_go() -> None:
    cluster = cluster_of()
    for name, path in (("a", FIRST), ("b", FIRST), ("c", FIRST), ("d", SECOND)):
        assert ask(cluster, f"{path}/", topic=name) == ErrorCode.REPLICA_NOT_AVAILABLE
        cluster.create_topic(name, factor=1)
        assert cluster.hosted(name)[1].directory.path == path


def test_the_controller_agrees_before_the_replica_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of(nodes=3)
    leader = cluster.controller()
    other = next(node_id for node_id in (1, 2, 3) if node_id != leader)
    hosted = cluster.hosted("t")[other]
    known = []
    promote = LogDirectory.promote

    def spied(self: LogDirectory, *args: Any, **kwargs: Any) -> Any:
        known.append(assigned(cluster, other) == self.directory_id)
        return promote(self, *args, **kwargs)

    monkeypatch.setattr(LogDirectory, "promote", spied)
    assert ask(cluster, elsewhere(hosted), to=other) == 0
    cluster.until(lambda: bool(known))
    assert known == [True]


def test_a_cleaning_of_the_log_ends_when_that_moves_between_two_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is clean stays so in the other directory."""
    held: list[Callable[[], None]] = []
    run = LogCleaner._run

    def hold(cleaner: LogCleaner, job: Any) -> None:
        held.append(lambda: run(cleaner, job))

    cluster = cluster_of(config={"log.cleaner.backoff.ms": "10"})
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "300"}
    cluster.create_topic("c", factor=1, config=compacted)
    hosted, cleaner = cluster.hosted("c")[1], cluster.node(1).components.housekeeping.cleaner

    def fill() -> None:
        for number in range(4):
            assert cluster.produce("c", [b"value"], key=b"k%d" % (number % 2)).error_code == 0
            cluster.run(400)

    fill()
    cluster.until(lambda: cleaner.cleaned > 0)
    monkeypatch.setattr(LogCleaner, "_run", hold)
    fill()
    cluster.until(lambda: bool(held))
    cleaned, target = cleaner.cleaned, elsewhere(hosted)
    assert ask(cluster, target, topic="c") == 0
    cluster.until(lambda: hosted.directory.path == target)
    monkeypatch.undo()
    held[0]()
    cluster.run(5)
    assert not cluster.node(1).replicas.directories.offline_ids()
    assert cleaner.cleaned == cleaned
    fill()
    cluster.until(lambda: cleaner.cleaned > cleaned)
    content = cluster.host(1).disk.content(f"{target}/cleaner-offset-checkpoint").decode()
    assert "\nc 0 " in content
