"""New logs: some in a turn, and their topic ids durable soon after, when the file system has nothing else to do."""

from __future__ import annotations

import pytest

from tanist.log.log import Log
from tests.broker.cluster_rig import Cluster


def test_topic_ids_are_made_durable_when_all_logs_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(config={"tanist.new.logs.turn.max": "2", "tanist.new.logs.pause.ms": "5000"})
    named: list[Log] = []
    write = Log.write_topic_id

    def noted(log: Log) -> None:
        named.append(log)
        write(log)

    monkeypatch.setattr(Log, "write_topic_id", noted)
    replicas = cluster.node(1).replicas
    cluster.create_topic("late", assignment=[[2, 1, 3]] * 4)

    def logs() -> list[Log]:
        return [hosted.log for hosted in replicas.by_topic["late"].values()]

    cluster.run(3_000)
    assert [log.partition for log in logs()] == [0, 1]
    assert not any(log in named for log in logs())
    cluster.run(5_000)
    assert [log.partition for log in logs()] == [0, 1, 2, 3]
    assert all(log in named and log.topic_id_durable for log in logs())
