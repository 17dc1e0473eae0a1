"""A start loads its logs off the event loop, and the broker takes part when it has them all."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tanist.broker.metadata.lifecycle import LifecycleState
from tanist.broker.metrics.positions import positions
from tanist.broker.metrics.scrape import scrape
from tanist.events.storage import LogsLoaded, LogsLoading
from tanist.log.checkpoints import CLEAN_SHUTDOWN
from tanist.sim.world.disk import SimDiskView
from tanist.sim.world.world import Host
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tests.broker.cluster_rig import Cluster
from tests.broker.prometheus_text import parse


class Jobs:
    """The jobs of one host's disk, held back until they are let go."""

    def __init__(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: deque[Callable[[], None]] = deque()
        self.holds = True
        run = SimDiskView.run

        def hold(view: SimDiskView, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
            if view._disk is host.disk and self.holds:
                self.held.append(partial(run, view, job, done))
            else:
                run(view, job, done)

        monkeypatch.setattr(SimDiskView, "run", hold)

    def let_one_go(self) -> None:
        self.held.popleft()()

    def let_go(self) -> None:
        self.holds = False
        while self.held:
            self.let_one_go()


def opens_a_segment(path: str) -> bool:
    return path.endswith(".log")


def records(cluster: Cluster, partitions: int) -> list[list[bytes]]:
    return [cluster.values("t", partition=index) for index in range(partitions)]


def remaining_logs(cluster: Cluster, node_id: int) -> dict[str, float]:
    found = parse(scrape(cluster.node(node_id).components).render())["kafka_log_logmanager_remaininglogstorecover"]
    return {dict(labels)["dir"]: value for labels, value in found.samples.items()}


def remaining(cluster: Cluster, node_id: int) -> tuple[float, dict[str, float]]:
    found = parse(scrape(cluster.node(node_id).components).render())
    (logs,) = found["kafka_log_logmanager_remaininglogstorecover"].samples.values()
    segments = found["kafka_log_logmanager_remainingsegmentstorecover"].samples
    return logs, {dict(labels)["threadNum"]: value for labels, value in segments.items()}


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(config={"replica.lag.time.max.ms": "1000"})
    cluster.create_topic("t", partitions=40)
    for partition in range(40):
        assert cluster.produce("t", [b"%d" % partition], partition=partition).error_code == 0
    return cluster


def test_a_broker_serves_nothing_until_all_its_logs_are_open(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    host = cluster.host(3)
    host.kill()
    cluster.run(1_000)
    there = set(host.disk.paths())
    jobs = Jobs(host, monkeypatch)
    host.start()
    cluster.until(lambda: len(jobs.held) == 2)  # num.recovery.threads.per.data.dir
    cluster.run(5_000)
    assert len(jobs.held) == 2
    node = cluster.node(3)
    assert (node.lifecycle.state, node.lifecycle.broker_epoch) == (LifecycleState.STARTING, -1)
    assert node.metadata.image.topics  # meanwhile it follows the metadata
    assert node.status()["waits_for"] == "its logs (0 of 40 loaded)"
    assert remaining(cluster, 3) == (40, {"0": 0, "1": 0})
    assert cluster.ask(DescribeClusterRequest(), 2, to=3) is None
    described = cluster.ask(DescribeClusterRequest(include_fenced_brokers=True), 2, to=1)
    assert [broker.broker_id for broker in described.brokers if broker.is_fenced] == [3]
    said = json.loads(positions(node.components, "-", 0))
    assert (said["state"], said["waits_for"]) == ("STARTING", "its logs (0 of 40 loaded)")
    assert said["metadata_age_ms"] is None  # it hears from the controller
    assert [(each.loaded, each.total) for each in cluster.seen(LogsLoading)][:1] == [(0, 40)]

    jobs.let_one_go()
    cluster.run(100)
    assert node.status()["waits_for"] == "its logs (6 of 40 loaded)"
    assert remaining(cluster, 3)[0] == 34
    assert not list(node.replicas)
    assert {path for path in host.disk.paths() if opens_a_segment(path)} == set(filter(opens_a_segment, there))

    jobs.let_go()
    cluster.until(lambda: all(3 in cluster.hosted("t", index) for index in range(40)))
    cluster.until(lambda: node.lifecycle.state is LifecycleState.RUNNING)
    assert node.status()["waits_for"] is None
    assert cluster.ask(DescribeClusterRequest(), 2, to=3).brokers
    assert remaining(cluster, 3) == (0, {"0": 0, "1": 0})
    assert 40 in [each.logs for each in cluster.seen(LogsLoaded)]


def test_the_threads_of_a_directory_have_as_many_logs_at_a_time_as_are_configured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = {"log.dirs": "/data/1,/data/2", "num.recovery.threads.per.data.dir": "3"}
    cluster = Cluster(config=config)
    cluster.create_topic("t", partitions=40)
    host = cluster.host(3)
    host.kill()
    jobs = Jobs(host, monkeypatch)
    host.start()
    cluster.run(1_000)
    assert len(jobs.held) == 6
    while jobs.held:
        jobs.let_one_go()
        cluster.run(10)
        assert len(jobs.held) <= 6
    jobs.let_go()
    cluster.until(lambda: len(cluster.hosted("t", 39)) == 3)


def test_a_loss_of_power_while_logs_are_loaded_costs_nothing_more(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = cluster.host(3)
    host.kill()
    cluster.run(1_000)
    jobs = Jobs(host, monkeypatch)
    host.start()
    cluster.until(lambda: len(jobs.held) == 2)
    jobs.let_one_go()
    cluster.run(100)
    assert cluster.node(3).status()["waits_for"] == "its logs (6 of 40 loaded)"
    host.lose_power()
    jobs.held.clear()
    jobs.let_go()
    host.start()
    cluster.until(lambda: all(len(cluster.hosted("t", index)) == 3 for index in range(40)))
    cluster.until(lambda: all(hosted.log.log_end_offset == 1 for hosted in cluster.hosted("t", 7).values()))
    assert cluster.node(3).lifecycle.previous_broker_epoch == -1


@pytest.mark.parametrize("changes", [1, 2, 3, 5, 8, 13, 21, 34])
def test_a_crash_in_the_middle_of_the_loading_leaves_every_record(changes: int) -> None:
    """Alone, so that there is nobody to fetch from."""
    cluster = Cluster(nodes=1)
    cluster.create_topic("t", partitions=12, factor=1)
    for partition in range(12):
        assert cluster.produce("t", [b"a%d" % partition], partition=partition).error_code == 0
    before = records(cluster, 12)
    host = cluster.host(1)
    host.kill()
    host.start()
    host.crash_in(changes)
    cluster.until(lambda: not host.up or cluster.leader("t", 11) is not None)
    if host.up:
        host.kill()
    host.start()
    cluster.until(lambda: all(cluster.leader("t", index) == 1 for index in range(12)))
    assert records(cluster, 12) == before


def test_a_broker_that_stops_while_it_loads_leaves_no_mark_of_a_clean_stop(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = cluster.host(3)
    stopped: list[bool] = []
    host.stop(lambda: stopped.append(True))
    cluster.until(lambda: bool(stopped))
    assert any(path.endswith(CLEAN_SHUTDOWN) for path in host.disk.paths())
    jobs = Jobs(host, monkeypatch)
    host.start()
    cluster.until(lambda: len(jobs.held) == 2)
    host.stop(lambda: stopped.append(True))
    cluster.run(1_000)
    assert len(stopped) == 1  # what is under way is waited for
    jobs.let_one_go()
    jobs.let_one_go()
    cluster.until(lambda: len(stopped) == 2)
    assert not jobs.held  # and nothing else was begun
    assert not any(path.endswith(CLEAN_SHUTDOWN) for path in host.disk.paths())
    jobs.let_go()
    host.start()
    cluster.until(lambda: all(len(cluster.hosted("t", index)) == 3 for index in range(40)))
    assert cluster.node(3).lifecycle.previous_broker_epoch == -1
    assert [hosted.log.log_end_offset for hosted in cluster.hosted("t", 39).values()] == [1, 1, 1]


def test_a_directory_that_fails_while_it_is_loaded_takes_its_replicas_offline() -> None:
    """And no other one's. Its other jobs may end before or after: what they have opened is closed."""
    cluster = Cluster(config={"log.dirs": "/data/1,/data/2"})
    cluster.create_topic("t", partitions=40)
    cluster.run(1_000)  # the controller knows which replica is where
    host = cluster.host(3)
    first, second = cluster.node(3).replicas.directories
    there = {log.partition for log in second.logs.values()}
    here = {log.partition for log in first.logs.values()}
    assert len(there) == len(here) == 20
    path = sorted(log.directory for log in second.logs.values())[9]
    host.kill()
    host.disk.failing.append(path)
    host.start()
    cluster.until(lambda: all(3 in cluster.hosted("t", index) for index in here))
    cluster.run(2_000)
    replicas = cluster.node(3).replicas
    assert replicas.directories.offline_ids() == (replicas.directories[1].directory_id,)
    assert {hosted.index for hosted in replicas} == here
    assert cluster.fetch("t", partition=min(there), to=3).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert remaining_logs(cluster, 3) == {"/data/1": 0, "/data/2": 0}
    # Mended, it has them again.
    host.kill()
    host.disk.failing.clear()
    host.start()
    cluster.until(lambda: all(3 in cluster.hosted("t", index) for index in range(40)))
