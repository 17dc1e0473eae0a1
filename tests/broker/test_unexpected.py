"""The table of docs/operations.md, "When a node meets an unexpected error": one planted exception for each row.

Each row is played in a cluster of three, in virtual time: what may be torn is not used any more, what was acknowledged
is there afterwards, and the cluster becomes whole. Without being planted, the same exception is a violation.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tanist.broker.api.produce import Produce
from tanist.log.checkpoints import CLEAN_SHUTDOWN
from tanist.sim.checkers.violation import CRASH
from tanist.sim.faults.links import cut
from tanist.sim.planted import PlantedError
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.scripted.cluster import ScriptError
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.cluster_rig import Cluster
from tests.planting import Plant

CRASHES, GOES_ON = "the process ends", "the node goes on"
TOPIC_CONFIG = {"message.timestamp.type": "LogAppendTime", "segment.bytes": str(1 << 20)}

Do = Callable[[Cluster], Any]


@dataclass(frozen=True)
class Row:
    """One row of the table: its name there, where the exception is planted, what brings it up, what comes of it."""

    name: str
    place: str
    do: Do
    outcome: str
    after: bool = False
    nodes_config: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.place}"


def produce(cluster: Cluster) -> Any:
    return cluster.produce("t", [b"x" * 100])


def roll(cluster: Cluster) -> None:
    for _ in range(3):
        cluster.produce("t", [b"x" * 400_000])


def truncate(cluster: Cluster) -> None:
    """A leader that is cut off takes records that the next leader does not have; then it follows that one."""
    old = cluster.leader("t")
    assert old is not None
    hosts = cluster.world.hosts
    mends = [cut(cluster.world, [hosts[old], other]) for other in hosts.values() if other is not hosts[old]]
    cluster.produce("t", [b"lost"], acks=1, to=old)
    cluster.until(lambda: cluster.leader("t") != old, 60_000)
    for mend in mends:
        mend()
    cluster.run(3_000)


def create(cluster: Cluster) -> None:
    cluster.create_topic("u", factor=1)


def metadata(cluster: Cluster) -> Any:
    return cluster.ask(MetadataRequest(topics=None), 9)


def commit(cluster: Cluster) -> Any:
    cluster.until(lambda: found(cluster).error_code == 0)
    return cluster.ask(
        OffsetCommitRequest(
            group_id="g",
            topics=(
                OffsetCommitRequestTopic(
                    name="t", partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=1),)
                ),
            ),
        ),
        8,
        to=found(cluster).node_id,
    )


def found(cluster: Cluster) -> Any:
    (answer,) = cluster.ask(FindCoordinatorRequest(coordinator_keys=("g",), key_type=0), 4).coordinators
    return answer


def move_coordinator(cluster: Cluster) -> None:
    """Its next leader replays the log of the group's partition."""
    commit(cluster)
    host = cluster.host(found(cluster).node_id)
    host.kill()
    cluster.run(12_000)
    host.start()


def wait(cluster: Cluster) -> None:
    cluster.run(15_000)


SNAPSHOTS = (("metadata.log.max.record.bytes.between.snapshots", "100"),)
ROWS = (
    Row("request", "tanist.broker.api.produce:Produce._append", produce, GOES_ON),
    Row("request", "tanist.broker.api.metadata:build", metadata, GOES_ON),
    Row("log", "tanist.log.appender:Appender._append_found", produce, CRASHES),
    Row("log", "tanist.log.segment:Segment.append", produce, CRASHES, after=True),
    Row("log", "tanist.log.segments:Segments.roll", roll, CRASHES, after=True),
    Row("log", "tanist.log.log:Log._cut", truncate, CRASHES, after=True),
    Row("log", "tanist.log.log:Log._cut", truncate, CRASHES),
    Row("replica", "tanist.replica.leader:LeaderState.appended", produce, CRASHES, after=True),
    Row("replica", "tanist.replica.leader:LeaderState.follower_fetch", produce, CRASHES, after=True),
    Row("replica", "tanist.replica.follower:FollowerState.fetched", produce, CRASHES),
    Row("coordinator", "tanist.coordinator.group_shard:GroupShard.commit", commit, GOES_ON, after=True),
    Row("coordinator", "tanist.coordinator.group_shard:GroupShard.apply", commit, GOES_ON),
    Row("coordinator", "tanist.broker.coordinator_runtime.loading:Loader._replay", move_coordinator, GOES_ON),
    Row("controller", "tanist.controller.topics:create_topics", create, GOES_ON),
    Row("controller", "tanist.broker.metadata.quorum:MetadataQuorum.append", create, GOES_ON),
    Row("controller", "tanist.controller.controller:Controller.replay", create, GOES_ON),
    Row("controller", "tanist.controller.controller:Controller.tick", wait, GOES_ON, after=True),
    Row("metadata quorum", "tanist.quorum.raft:RaftNode.receive", create, CRASHES, after=True),
    Row("metadata quorum", "tanist.quorum.storage.metadata_log:MetadataLog.append", create, CRASHES, after=True),
    Row("metadata quorum", "tanist.log.segment:Segment.append", create, CRASHES, after=True),
    Row("metadata quorum", "tanist.broker.metadata.view:MetadataView.apply", create, CRASHES),
    Row("metadata quorum", "tanist.broker.metadata.view:MetadataView._publish", create, CRASHES),
    Row("loop", "tanist.broker.turn:Turn._complete_fetches", produce, CRASHES),
    Row("loop", "tanist.broker.turn:Turn._ended", produce, CRASHES),
    Row(
        "loop", "tanist.broker.metadata.snapshot_writer:SnapshotWriter._write_slice", create, CRASHES, False, SNAPSHOTS
    ),
    Row("loop", "tanist.broker.storage.housekeeping:Housekeeping.check_lag", wait, CRASHES),
    Row("loop", "tanist.broker.replication.fetcher:Fetcher._send", produce, CRASHES),
    Row("job", "tanist.log.salvage.quarantine:Quarantine._copy", truncate, GOES_ON),
)


def began(row: Row, monkeypatch: pytest.MonkeyPatch, error: Callable[[], Exception]) -> tuple[Cluster, Plant]:
    plant = Plant(row.place, error, after=row.after)
    plant.install(monkeypatch.setattr)
    cluster = Cluster(
        config={"min.insync.replicas": "2", "offsets.topic.num.partitions": "1", **dict(row.nodes_config)}
    )
    cluster.create_topic("t", config=TOPIC_CONFIG)
    assert cluster.produce("t", [b"first"]).error_code == 0
    commit(cluster)
    plant.armed = 1
    return cluster, plant


def ended(cluster: Cluster) -> list[int]:
    return [node_id for node_id, host in cluster.world.hosts.items() if host.crash_reports]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, plant = began(row, monkeypatch, lambda: PlantedError("planted"))
    with suppress(ScriptError, AttributeError):  # the answer may be an error, or lost with the process
        row.do(cluster)
    cluster.until(lambda: plant.raised == 1, 60_000)
    cluster.run(1_000)
    assert any("ERROR unexpected error in" in line for line in cluster.log)
    crashed = ended(cluster)
    assert bool(crashed) == (row.outcome == CRASHES), cluster.log[-20:]
    for node_id in crashed:
        host = cluster.host(node_id)
        assert not host.up
        assert host.lives not in host.clean_ends
        assert not any(path.endswith(CLEAN_SHUTDOWN) for path in host.disk.paths())
        (report,) = host.crash_reports
        assert "PlantedError" in report
        assert "Traceback" in report
        assert "events:" in report
        host.start()
    whole(cluster)
    assert b"first" in cluster.values("t")


def whole(cluster: Cluster) -> None:
    """All nodes run, all replicas are in sync, and everything is served."""
    cluster.until(cluster.world.ready, 60_000)

    def in_sync() -> bool:
        leader = cluster.leader("t")
        return leader is not None and len(cluster.hosted("t")[leader].leader.isr) == 3

    cluster.until(in_sync, 60_000)
    assert cluster.produce("t", [b"last"]).error_code == 0
    cluster.until(lambda: commit(cluster).topics[0].partitions[0].error_code == 0, 60_000)
    if cluster.host(1).node is not None and "u" not in cluster.node(1).metadata.image.topic_ids:
        cluster.create_topic("u", factor=1)


@pytest.mark.parametrize("row", [row for row in ROWS if row.name != "job"], ids=str)
def test_the_same_is_a_violation_if_the_run_has_not_planted_it(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that a node answers, and goes on after."""
    cluster, _ = began(row, monkeypatch, lambda: IndexError("a bug"))
    with pytest.raises(IndexError, match="a bug"):
        row.do(cluster)


def test_a_run_of_the_simulator_says_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise IndexError("a bug")

    monkeypatch.setattr(Produce, "_append", broken)
    monkeypatch.setattr(Produce, "handle", Produce._handle_any)
    violation = ChaosRun(1).run().violation
    assert violation is not None
    assert violation.property_id == CRASH
    assert violation.error == "IndexError"
    assert "broker/api/produce::_handle_any" in violation.frames


def test_a_request_that_makes_a_node_raise_is_reported_once_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS[0]
    cluster, plant = began(row, monkeypatch, lambda: PlantedError("planted"))
    plant.armed = 20
    answers = [produce(cluster).error_code for _ in range(20)]
    assert answers == [ErrorCode.UNKNOWN_SERVER_ERROR] * 20
    said = [line for line in cluster.log if "unexpected error" in line]
    assert len(said) == 5  # the first, the 2nd, 4th, 8th, 16th
    leader = cluster.leader("t")
    assert leader is not None
    assert cluster.node(leader).context.unexpected.counts() == {"a handler of PRODUCE": 20}
    assert produce(cluster).error_code == 0


def test_the_table_has_these_rows() -> None:
    text = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    _, _, section = text.partition("## When a node meets an unexpected error")
    table = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    names = [line.split("|")[1].strip().strip("*") for line in table[2:]]
    assert names == list(dict.fromkeys(row.name for row in ROWS))
