"""`tanist reassign` on Apache Kafka: the commands work there, and the files are those of kafka-reassign-partitions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.interop import apache
from tests.interop.cluster import wait_in_sync
from tests.interop.tanist_cluster import TanistCluster, tanist
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

TOPIC = "moved"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[apache.ApacheCluster]:
    cluster = apache.ApacheCluster(tmp_path / "apache", nodes=3, heap="256m")
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def test_plans_are_exchanged_with_kafkas_tool(cluster: apache.ApacheCluster, tmp_path: Path) -> None:
    at = ("--bootstrap", cluster.bootstrap)
    common = ("--bootstrap-server", cluster.bootstrap)
    tanist("topics", "create", TOPIC, "--replica-assignment", "1:2,1:2,1:2", *at)
    wait_in_sync(cluster, TOPIC)
    ours, back = tmp_path / "ours.json", tmp_path / "back.json"
    ours.write_text(tanist("reassign", "plan", "--topic", TOPIC, *at))
    planned = [part["replicas"] for part in json.loads(ours.read_text())["partitions"]]
    assert sum(3 in replicas for replicas in planned) == 2

    tanist("reassign", "apply", str(ours), "--save-current", str(back), "--wait", "60", *at)
    reported = apache.tool(
        apache.REASSIGN_PARTITIONS, *common, "--reassignment-json-file", str(ours), "--verify"
    ).stdout
    assert all(f"Reassignment of partition {TOPIC}-{index} is completed." in reported for index in range(3))
    apache.reassign(cluster.bootstrap, json.loads(back.read_text()))
    rows = json.loads(tanist("reassign", "list", str(back), "--json", *at))
    assert [(row["state"], row["replicas"]) for row in rows] == [("complete", [1, 2])] * 3

    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": TOPIC}]}))
    assert json.loads(tanist("reassign", "plan", "--topics-to-move-json-file", str(topics), *at))["partitions"]
    reported = apache.tool(
        apache.REASSIGN_PARTITIONS, *common, "--topics-to-move-json-file", str(topics), "--broker-list", "2,3",
        "--generate",
    ).stdout  # fmt: skip
    theirs = tmp_path / "theirs.json"
    theirs.write_text(reported.strip().splitlines()[-1])
    tanist("reassign", "apply", str(theirs), "--wait", "60", *at)
    rows = json.loads(tanist("reassign", "list", str(theirs), "--json", *at))
    assert {row["state"] for row in rows} == {"complete"}
    assert all(set(row["replicas"]) == {2, 3} for row in rows)
    assert tanist("reassign", "cancel", "--all", *at) == "nothing is under way\n"


def test_kafkas_tool_throttles_a_move_of_ours_and_takes_the_throttle_back(tmp_path: Path) -> None:
    """Some 15 MB at 1 MB a second: ten seconds' worth are free, the rest takes its time."""
    ours = TanistCluster(tmp_path / "ours", nodes=3, properties={"replica.fetch.max.bytes": "262144"})
    ours.start()
    try:
        at = ("--bootstrap", ours.bootstrap)
        common = ("--bootstrap-server", ours.bootstrap)
        tanist("topics", "create", TOPIC, "--replica-assignment", "1", *at)
        apache.tool(
            apache.PRODUCER_PERFORMANCE, "--topic", TOPIC, "--num-records", "15000", "--record-size", "1000",
            "--throughput", "-1", "--bootstrap-server", ours.bootstrap,
        )  # fmt: skip
        plan = tmp_path / "plan.json"
        moves = {"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": [2, 3]}]}
        plan.write_text(json.dumps(moves))
        file = ("--reassignment-json-file", str(plan))
        began_s = monotonic()
        apache.tool(apache.REASSIGN_PARTITIONS, *common, *file, "--execute", "--throttle", "1000000")
        assert "1000000" in tanist("configs", "describe", "--broker", "1", *at)

        def complete() -> bool:
            rows = json.loads(tanist("reassign", "list", str(plan), "--json", *at))
            return all(row["state"] == "complete" for row in rows)

        wait_for(complete, "the throttled move is complete", timeout_s=120)
        # Two copies leave broker 1: 30 MB, of which 10 are free.
        assert monotonic() - began_s > 12
        reported = apache.tool(apache.REASSIGN_PARTITIONS, *common, *file, "--verify").stdout
        assert "is completed" in reported
        assert "throttled.rate" not in tanist("configs", "describe", "--broker", "1", *at)
    finally:
        ours.stop()


def in_directories(bootstrap: str, *, broker: int) -> dict[str, bool]:
    """Where Apache's kafka-log-dirs finds the topic on a broker: the directory, and whether it is on its way there."""
    said = apache.tool(
        apache.LOG_DIRS, "--bootstrap-server", bootstrap, "--describe", "--topic-list", TOPIC, "--broker-list",
        str(broker),
    ).stdout  # fmt: skip
    [described] = json.loads(said.strip().splitlines()[-1])["brokers"]
    return {
        each["logDir"]: part["isFuture"]
        for each in described["logDirs"]
        for part in each["partitions"]
        if part["partition"] == f"{TOPIC}-0"
    }


def test_kafkas_tool_moves_our_replicas_between_log_directories(tmp_path: Path) -> None:
    """With a throttle, while records are written; and a new replica is made in the directory that it names."""
    ours = TanistCluster(tmp_path / "ours", nodes=3, properties={"replica.fetch.max.bytes": "262144"})
    ours.options = ("--log-dirs", "2")
    ours.start()
    try:
        at = ("--bootstrap", ours.bootstrap)
        common = ("--bootstrap-server", ours.bootstrap)
        tanist("topics", "create", TOPIC, "--replica-assignment", "1:2", *at)

        def write(records: int) -> None:
            apache.tool(
                apache.PRODUCER_PERFORMANCE, "--topic", TOPIC, "--num-records", str(records), "--record-size", "1000",
                "--throughput", "-1", "--bootstrap-server", ours.bootstrap,
            )  # fmt: skip

        write(15_000)
        plan = tmp_path / "plan.json"

        def propose(replicas: list[int], log_dirs: list[str]) -> None:
            part = {"topic": TOPIC, "partition": 0, "replicas": replicas, "log_dirs": log_dirs}
            plan.write_text(json.dumps({"version": 1, "partitions": [part]}))

        def verified() -> str | None:
            reported = apache.tool(
                apache.REASSIGN_PARTITIONS, *common, "--reassignment-json-file", str(plan), "--verify"
            ).stdout
            return None if "in progress" in reported else reported

        both = {str(ours.directory / "node-1" / name) for name in ("data", "data-2")}
        [source] = in_directories(ours.bootstrap, broker=1)
        [target] = both - {source}
        propose([1, 2], [target, "any"])
        file = ("--reassignment-json-file", str(plan))
        said = apache.tool(
            apache.REASSIGN_PARTITIONS, *common, *file, "--execute", "--replica-alter-log-dirs-throttle", "200000"
        ).stdout
        assert f"{target} for replica {TOPIC}-0 with broker 1" in said
        assert "200000" in tanist("configs", "describe", "--broker", "1", *at)
        assert in_directories(ours.bootstrap, broker=1) == {source: False, target: True}
        [row] = json.loads(tanist("reassign", "list", str(plan), "--json", *at))
        [moving] = row["log_dirs"]
        assert (row["state"], moving["broker"], moving["path"], moving["target"]) == ("moving", 1, source, target)
        write(1_000)
        faster = "replica.alter.log.dirs.io.max.bytes.per.second=10000000"
        tanist("configs", "alter", "--broker", "1", "--config", faster, *at)
        reported = wait_for(verified, "the move is complete", timeout_s=240)
        assert f"Reassignment of replica {TOPIC}-0-1 completed successfully." in reported
        assert in_directories(ours.bootstrap, broker=1) == {target: False}
        assert "io.max.bytes" not in tanist("configs", "describe", "--broker", "1", *at)

        there = str(ours.directory / "node-3" / "data-2")
        propose([1, 3], [source, there])
        apache.tool(apache.REASSIGN_PARTITIONS, *common, *file, "--execute")
        tanist("reassign", "apply", str(plan), "--wait", "60", *at)
        assert in_directories(ours.bootstrap, broker=3) == {there: False}
        ours.tanist("crash", "1")
        ours.tanist("start", "1")
        consumed = tanist("consume", TOPIC, "--from-beginning", "--timeout", "10", "--json", *at)
        assert len(consumed.splitlines()) == 16_000
    finally:
        ours.stop()
