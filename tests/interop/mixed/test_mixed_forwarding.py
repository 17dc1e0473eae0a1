"""A tanist broker under a controller of Apache Kafka: what its clients ask of the controller is forwarded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.apache import CONFIGS, CONSOLE_PRODUCER, TOPICS, tool
from tests.interop.cluster import wait_in_sync
from tests.interop.mixed.mixed_cluster import APACHE, TANIST, Member, MixedCluster
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    members = {1: Member(TANIST, "broker"), 11: Member(APACHE, "controller")}
    cluster = MixedCluster(tmp_path, members)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def test_a_broker_of_ours_forwards_to_an_apache_controller(cluster: MixedCluster) -> None:
    at = ("--bootstrap-server", cluster.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", "forwarded", "--partitions", "2", "--replication-factor", "1")
    wait_in_sync(cluster, "forwarded")
    tool(CONFIGS, *at, "--alter", "--topic", "forwarded", "--add-config", "retention.ms=12345")
    wait_for(
        lambda: "retention.ms=12345" in tool(CONFIGS, *at, "--describe", "--topic", "forwarded").stdout,
        "the configuration is there",
        timeout_s=30,
    )
    tool(CONSOLE_PRODUCER, *at, "--topic", "forwarded", stdin="one\ntwo\n")
    tool(TOPICS, *at, "--delete", "--topic", "forwarded")
    wait_for(lambda: "forwarded" not in tool(TOPICS, *at, "--list").stdout, "the topic is gone", timeout_s=30)
    assert "PRINCIPAL_DESERIALIZATION_FAILURE" not in cluster.log(1) + cluster.log(11)
    assert "refuses a forwarded request" not in cluster.log(1)
