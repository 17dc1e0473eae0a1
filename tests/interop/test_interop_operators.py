"""Our operator's commands on Apache Kafka, and features that one of them has formatted and the other begins with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import apache
from tests.interop.cluster import free_ports, wait_in_sync
from tests.interop.tanist_cluster import CommandFailed, TanistNode, tanist

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

ELR = "eligible.leader.replicas.version"


def unformatted(folder: Path) -> apache.ApacheCluster:
    """One node whose properties are written, and nothing else."""
    node = apache.ApacheCluster(folder, nodes=1, first_port=free_ports(2), heap="256m")
    node.log_directory(1).mkdir(parents=True)
    node.properties_file(1).write_text("".join(f"{key}={value}\n" for key, value in node.node_properties(1).items()))
    return node


@pytest.fixture
def without_elr(tmp_path: Path) -> Iterator[apache.ApacheCluster]:
    """Apache Kafka on folders that we have formatted, for a cluster without ELR."""
    node = unformatted(tmp_path)
    cluster_id = tanist("random-uuid").strip()
    tanist("format", "-c", str(node.properties_file(1)), "-t", cluster_id, "--feature", f"{ELR}=0")
    # Made anew, it finds its folders formatted.
    node = apache.ApacheCluster(tmp_path, nodes=1, first_port=node.address(1)[1], heap="256m")
    node.start()
    try:
        yield node
    finally:
        node.stop()


def test_apache_kafka_begins_with_what_we_have_formatted(without_elr: apache.ApacheCluster) -> None:
    written = str(without_elr.log_directory(1) / "bootstrap.checkpoint")
    reported = apache.tool(apache.DUMP_LOG, "--cluster-metadata-decoder", "--files", written).stdout
    assert re.findall(r'"name":"([a-z.]+)","featureLevel":(\d+)', reported) == [("metadata.version", "30")]

    at = ("--bootstrap", without_elr.bootstrap)
    levels = {
        each["feature"]: each["level"] for each in json.loads(tanist("features", "describe", "--json", *at))["features"]
    }
    assert (levels[ELR], levels["metadata.version"]) == (0, 30)
    tanist("features", "upgrade", "--feature", f"{ELR}=1", "--dry-run", *at)
    tanist("features", "upgrade", "--feature", f"{ELR}=1", *at)
    reported = apache.tool(apache.FEATURES, "--bootstrap-server", without_elr.bootstrap, "describe").stdout
    assert dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", reported))[ELR] == "1"
    with pytest.raises(CommandFailed, match="upgrade type"):
        tanist("features", "upgrade", "--feature", f"{ELR}=0", *at)
    tanist("features", "downgrade", "--feature", f"{ELR}=0", *at)

    tanist("topics", "create", "t", "--partitions", "2", *at)
    wait_in_sync(without_elr, "t")
    ours = tanist("topics", "describe", "t", *at)
    theirs = apache.tool(
        apache.TOPICS, "--bootstrap-server", without_elr.bootstrap, "--describe", "--topic", "t"
    ).stdout
    assert ours.splitlines()[1:] == [line.rstrip("\n") for line in theirs.splitlines()[1:]]
    why = tanist("topics", "describe", "t", "--explain", *at).splitlines()
    assert why[2].strip() == "broker 1 leads and every replica is in sync"

    one = ("--topic", "t", "--partition", "0", *at)
    assert tanist("elect", "--type", "preferred", *one) == "t-0: not needed\n"
    assert tanist("elect", "--type", "unclean", *one) == "t-0: not needed\n"
    assert tanist("elect", "--type", "preferred", "--all-topic-partitions", *at) == "no partition needs an election\n"
    for election in ("longest_log_aggressive", "longest_log_balanced"):
        with pytest.raises(
            CommandFailed, match=f"(?s)up to version 2, and {election.upper()} elections need version 3"
        ):
            tanist("elect", "--type", election, *one)
    with pytest.raises(CommandFailed, match="DESIGNATION elections need version 3"):
        tanist("elect", "--type", "designation", "--desired-leader", "1", *one)


def test_we_begin_with_what_apache_kafka_has_formatted(tmp_path: Path) -> None:
    node = unformatted(tmp_path)
    apache.tool(
        apache.STORAGE, "format", "--config", str(node.properties_file(1)), "--cluster-id", apache.random_cluster_id(),
        "--feature", f"{ELR}=0",
    )  # fmt: skip
    heir = TanistNode(node.properties_file(1))
    heir.start()
    try:
        at = ("--bootstrap", heir.bootstrap)
        reported = json.loads(tanist("features", "describe", "--json", *at))["features"]
        assert {each["feature"]: each["level"] for each in reported} == {
            ELR: 0,
            "group.version": 1,
            "metadata.version": 30,
        }
        said = (tmp_path / "node-1" / "tanist.log").read_text()
        assert "transaction.version 2 is kept" not in said
    finally:
        heir.stop()
