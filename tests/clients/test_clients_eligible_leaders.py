"""KIP-966 on a live cluster that has lost brokers, as Apache Kafka's own tools show it, and ours beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.interop import apache
from tests.interop.cluster import Cluster, metadata, wait_in_sync
from tests.interop.tanist_cluster import CommandFailed, tanist
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.interop, pytest.mark.usefixtures("java")]

ELR = "eligible.leader.replicas.version"


def kafka_topics(cluster: Cluster, *arguments: str) -> list[str]:
    reported = apache.tool(apache.TOPICS, "--bootstrap-server", cluster.bootstrap, "--describe", *arguments).stdout
    return [line for line in reported.splitlines() if line.strip()]


def our_topics(cluster: Cluster, *arguments: str) -> list[str]:
    reported = tanist("topics", "describe", *arguments, "--bootstrap", cluster.bootstrap)
    return [line for line in reported.splitlines() if line.strip()]


def fields(line: str) -> dict[str, str]:
    """One line of a description, as its `Name: value` fields; what is a list as a sorted one."""
    found = {name: value.strip() for name, value in re.findall(r"([A-Z]\w*): ([^\t\n]*)", line)}
    return {name: ",".join(sorted(value.split(","))) for name, value in found.items()}


def create(cluster: Cluster, name: str, assignment: str, **config: str) -> None:
    """By our command: kafka-topics refuses settings that Apache Kafka does not have before it asks anybody."""
    settings = [part for key, value in config.items() for part in ("--config", f"{key.replace('_', '.')}={value}")]
    tanist("topics", "create", name, "--replica-assignment", assignment, *settings, "--bootstrap", cluster.bootstrap)
    wait_in_sync(cluster, name)


@pytest.fixture
def second(cluster: Cluster) -> Iterator[int]:
    """A broker that may be killed; it runs again afterwards."""
    node_id = cluster.node_ids[1]
    yield node_id
    if cluster.pid(node_id) is None:
        cluster.start_node(node_id)


def test_an_eligible_leader_replica_is_shown(cluster: Cluster, topic_name: str, second: int) -> None:
    first = cluster.node_ids[0]
    create(cluster, topic_name, f"{first}:{second}", min_insync_replicas="2")
    assert kafka_topics(cluster, "--at-min-isr-partitions", "--topic", topic_name)
    cluster.kill_node(second)

    def degraded() -> bool:
        reported = fields(kafka_topics(cluster, "--topic", topic_name)[1])
        return (reported["Leader"], reported["Isr"], reported["Elr"]) == (str(first), str(first), str(second))

    wait_for(degraded, f"{second} is eligible")
    # Line by line what kafka-topics prints, with every filter that it has.
    for filters in ((), ("--under-min-isr-partitions",), ("--under-replicated-partitions",)):
        theirs = kafka_topics(cluster, *filters, "--topic", topic_name)
        ours = our_topics(cluster, topic_name, *filters)
        assert theirs
        assert [fields(line) for line in ours] == [fields(line) for line in theirs]
    for filter_ in ("--at-min-isr-partitions", "--unavailable-partitions"):
        assert kafka_topics(cluster, filter_, "--topic", topic_name) == our_topics(cluster, topic_name, filter_) == []

    cluster.start_node(second)
    wait_in_sync(cluster, topic_name)
    reported = fields(kafka_topics(cluster, "--topic", topic_name)[1])
    assert (reported["Elr"], reported["LastKnownElr"]) == ("", "")


def test_a_partition_whose_last_known_member_is_lossy_waits_for_an_operator(
    cluster: Cluster, topic_name: str, second: int
) -> None:
    create(cluster, topic_name, str(second), unclean_recovery_strategy="None")
    cluster.kill_node(second)

    def described() -> tuple[str, str, str, str]:
        reported = fields(kafka_topics(cluster, "--topic", topic_name)[1])
        return reported["Leader"], reported["Isr"], reported["Elr"], reported["LastKnownElr"]

    wait_for(lambda: described() == ("none", "", str(second), ""), "an empty ISR, and an ELR")
    assert kafka_topics(cluster, "--unavailable-partitions", "--topic", topic_name)
    cluster.start_node(second)
    # It was killed, so it may lack records: it is eligible no more, but known to have been.
    wait_for(lambda: described() == ("none", "", "", str(second)), "a LastKnownElr")
    why = our_topics(cluster, topic_name, "--explain")[-1]
    assert "strategy None leaves the choice to an operator" in why

    election = ("elect", "--topic", topic_name, "--partition", "0", "--bootstrap", cluster.bootstrap)
    with pytest.raises(CommandFailed, match="failed"):
        tanist(*election, "--type", "designation", "--desired-leader", str(cluster.node_ids[0]))
    reported = tanist(*election, "--type", "designation", "--desired-leader", str(second))
    assert reported == f"{topic_name}-0: elected\n"
    wait_for(lambda: described() == (str(second), str(second), "", ""), "the designated leader")
    assert metadata(cluster, second, (topic_name,)).leaders(topic_name) == {0: second}
    assert tanist(*election, "--type", "longest_log_balanced") == f"{topic_name}-0: not needed\n"


def test_kafka_features_changes_the_level(cluster: Cluster) -> None:
    def level() -> str:
        reported = apache.tool(apache.FEATURES, "--bootstrap-server", cluster.bootstrap, "describe").stdout
        levels: dict[str, str] = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", reported))
        return levels[ELR]

    def change(how: str, to: int, *more: str) -> apache.ToolOutput:
        return apache.try_tool(
            apache.FEATURES, "--bootstrap-server", cluster.bootstrap, how, "--feature", f"{ELR}={to}", *more
        )

    assert level() == "1"
    refused = change("upgrade", 2)
    assert refused.returncode != 0
    assert "only supports versions 0-1" in refused.stdout + refused.stderr, refused
    assert change("downgrade", 0, "--dry-run").returncode == 0
    assert level() == "1"
    try:
        assert change("downgrade", 0).returncode == 0
        wait_for(lambda: level() == "0", "ELR is off")
    finally:
        assert change("upgrade", 1).returncode == 0
    wait_for(lambda: level() == "1", "ELR is on")
