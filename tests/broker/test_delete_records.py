"""DeleteRecords waits for the log starts of the live replicas: for what moves them, and for no clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tanist.ports import Timer
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.broker.cluster_rig import Cluster

LONG_MS = 600_000
HERE = "tanist.broker.api.delete_records"


@pytest.fixture
def cluster() -> Cluster:
    """A topic on 1 and 2 with five records, of which 1 hears nothing from 2 for now."""
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2]])
    assert cluster.produce("t", [b"value"] * 5).error_code == 0
    cluster.run(2_000)
    cluster.block(2, 1)
    return cluster


class Asker:
    """A client on a connection of its own."""

    def __init__(self, cluster: Cluster, timeout_ms: int) -> None:
        self.answers: list[Any] = []
        self._cluster = cluster
        topic = DeleteRecordsTopic(name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=3),))
        request = DeleteRecordsRequest(topics=(topic,), timeout_ms=timeout_ms)
        self._client = cluster.new_client(f"asker {timeout_ms}")
        cluster.send(request, 2, to=1, timeout_ms=2 * LONG_MS, client=self._client, heard=self._handle_response)
        cluster.run(20)

    def _handle_response(self, response: Any) -> None:
        if response is not None:
            self.answers.append(response.topics[0].partitions[0])

    def go(self) -> None:
        self._client.run(self._client.end_life)
        self._cluster.run(20)


def waiting(cluster: Cluster) -> int:
    """Requests that wait on the leader."""
    return sum(type(each).__module__ == HERE for each in cluster.node(1).components.purgatory.waiting())


def test_no_timer_runs_for_a_request_that_waits(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = cluster.node(1).context.clock
    call_at = clock.call_at
    timers: list[str] = []

    def counted(when_ms: int, callback: Callable[[], None]) -> Timer:
        timers.append(getattr(callback, "__module__", ""))
        return call_at(when_ms, callback)

    monkeypatch.setattr(clock, "call_at", counted)
    asker = Asker(cluster, LONG_MS)
    cluster.run(1_000)
    assert asker.answers == []
    assert HERE not in timers


def test_it_is_answered_when_the_last_replica_follows(cluster: Cluster) -> None:
    asker = Asker(cluster, LONG_MS)
    cluster.run(1_000)
    assert asker.answers == []
    assert waiting(cluster) == 1
    cluster.heal()
    cluster.until(lambda: bool(asker.answers), within_ms=5_000)
    assert [(each.error_code, each.low_watermark) for each in asker.answers] == [(0, 3)]
    assert {hosted.log.log_start_offset for hosted in cluster.hosted("t").values()} == {3}
    assert waiting(cluster) == 0


def test_it_is_given_up_when_its_client_goes(cluster: Cluster) -> None:
    asker = Asker(cluster, LONG_MS)
    assert waiting(cluster) == 1
    asker.go()
    assert waiting(cluster) == 0
    cluster.heal()
    hosted = cluster.hosted("t")
    cluster.until(lambda: hosted[2].log.log_start_offset == 3)
    cluster.run(2_000)
    assert hosted[1].low_watermark_waiters == []
    assert asker.answers == []


def test_it_ends_at_its_timeout(cluster: Cluster) -> None:
    asker = Asker(cluster, 1_000)
    assert asker.answers == []
    cluster.until(lambda: bool(asker.answers), within_ms=1_100)
    assert [each.error_code for each in asker.answers] == [ErrorCode.REQUEST_TIMED_OUT]


def test_a_replica_that_is_fenced_is_not_waited_for(cluster: Cluster) -> None:
    asker = Asker(cluster, LONG_MS)
    assert asker.answers == []
    cluster.host(2).kill()
    cluster.until(lambda: bool(asker.answers), within_ms=30_000)
    assert [(each.error_code, each.low_watermark) for each in asker.answers] == [(0, 3)]


def test_a_leader_that_is_deposed_says_so(cluster: Cluster) -> None:
    asker = Asker(cluster, LONG_MS)
    cluster.cut(1, 2, 3)
    cluster.until(lambda: cluster.leader("t") == 2, within_ms=60_000)
    assert asker.answers == []  # it does not know yet
    cluster.heal()
    cluster.until(lambda: bool(asker.answers))
    assert [each.error_code for each in asker.answers] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
