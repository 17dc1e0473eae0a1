"""`tanist migrate plan` on a cluster of Apache Kafka that has a bit of everything: each thing is found, by its kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.samples import samples
from tests.interop.apache import CONFIGS, ApacheCluster, RunningTool, tool
from tests.interop.tanist_cluster import tanist
from tests.interop.traffic import create_topic, enlarged, produce
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java", "libraries")]

ACLS = "org.apache.kafka.tools.AclCommand"
SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SINGLE = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "num.io.threads": "4",
}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ApacheCluster]:
    cluster = ApacheCluster(tmp_path, nodes=1, quorum="standalone", properties=SINGLE | request.param)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def plan(cluster: ApacheCluster) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tanist("migrate", "plan", "--bootstrap", cluster.bootstrap, "--json"))
    return found


def kinds(found: dict[str, Any], severity: str) -> dict[str, list[str]]:
    return {each["kind"]: each["details"] for each in found["findings"] if each["severity"] == severity}


@pytest.mark.parametrize("cluster", [{}], indirect=True)
def test_a_cluster_as_the_quick_start_makes_it_can_be_rolled(cluster: ApacheCluster) -> None:
    create_topic(cluster, "plain", 1)
    produce(cluster, "plain", enlarged(samples(10)))
    found = plan(cluster)
    assert found["accept"] == []
    assert not found["refused"], kinds(found, "refused")
    assert [(step["node"], step["under_way"]) for step in found["steps"]] == [(1, False)]
    (node,) = found["nodes"]
    assert (node["software"], node["roles"], node["voter"]) == ("Apache Kafka", ["broker", "controller"], True)
    assert node["log_dirs"] == str(cluster.log_directory(1))
    notes = kinds(found, "note")
    assert set(notes) == {"features", "configurations", "requests"}
    assert "num.io.threads (nodes 1)" in notes["configurations"]
    assert notes["requests"] == ["AlterReplicaLogDirs"]


@pytest.mark.parametrize("cluster", [AUTHORIZER], indirect=True)
def test_everything_that_is_in_use_is_found(cluster: ApacheCluster) -> None:
    from confluent_kafka import Producer

    at = ("--bootstrap-server", cluster.bootstrap)
    create_topic(cluster, "used", 1, preallocate="true")
    tool(ACLS, *at, "--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "used")
    tool(CONFIGS, *at, "--alter", "--entity-type", "users", "--entity-name", "alice", "--add-config",
         "SCRAM-SHA-256=[password=secret]")  # fmt: skip
    tool(CONFIGS, *at, "--alter", "--entity-type", "clients", "--entity-name", "slow", "--add-config",
         "producer_byte_rate=1024")  # fmt: skip
    tool(CONFIGS, *at, "--alter", "--entity-type", "client-metrics", "--entity-name", "latency", "--add-config",
         "interval.ms=1000,metrics=")  # fmt: skip
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "billing"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("used", b"one")
    producer.flush(30)
    with RunningTool(SHARE_CONSUMER, *at, "--topic", "used", "--group", "shared"):
        wait_for(lambda: "share-groups" in kinds(plan(cluster), "lost"), "the share group is there", timeout_s=60)
    found = plan(cluster)
    assert not found["refused"], kinds(found, "refused")
    lost = kinds(found, "lost")
    assert set(lost) == {"share-groups"}
    assert kinds(found, "note")["scram"] == ["alice"]
    assert lost["share-groups"][0].startswith("shared: ")
    notes = {each["message"]: each["details"] for each in found["findings"] if each["severity"] == "note"}
    assert ["preallocate (used)"] in notes.values()
    assert ["latency"] in notes.values()
    assert ["User:alice on used"] in notes.values()
    assert ["billing: Ongoing"] in notes.values()  # and nothing that hangs
    assert "open" not in "".join(notes)
    producer.commit_transaction(60)
    assert kinds(plan(cluster), "note")["transactions"] == ["billing: CompleteCommit"]
