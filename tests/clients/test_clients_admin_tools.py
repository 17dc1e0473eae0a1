"""Apache Kafka's admin tools: kafka-topics, -configs, -metadata-quorum, -reassign-partitions, -leader-election, ..."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interop import apache
from tests.interop.cluster import Cluster, active_controller, metadata, wait_in_sync
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.interop, pytest.mark.usefixtures("java")]


def topics(cluster: Cluster, *arguments: str) -> str:
    return apache.tool(apache.TOPICS, "--bootstrap-server", cluster.bootstrap, *arguments).stdout


def configs(cluster: Cluster, *arguments: str) -> str:
    return apache.tool(apache.CONFIGS, "--bootstrap-server", cluster.bootstrap, *arguments).stdout


def create(cluster: Cluster, name: str, *arguments: str) -> str:
    topics(cluster, "--create", "--topic", name, *arguments)
    wait_in_sync(cluster, name)
    return name


def described(line: str) -> dict[str, str]:
    """One line of kafka-topics --describe, as its `Name: value` fields."""
    return {name: value.strip() for name, value in re.findall(r"(\w+): ([^\t\n]*)", line)}


def segments(cluster: Cluster, node_id: int, topic: str) -> bytes:
    """The bytes of a replica's log, all segments."""
    folder = cluster.log_directory(node_id) / f"{topic}-0"
    return b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))


def test_topics_are_created_listed_described_grown_and_deleted(cluster: Cluster, topic_name: str) -> None:
    create(
        cluster, topic_name, "--partitions", "4", "--replication-factor", "3",
        "--config", "min.insync.replicas=2", "--config", "cleanup.policy=compact",
    )  # fmt: skip
    assert topic_name in topics(cluster, "--list").split()

    summary, *partitions = topics(cluster, "--describe", "--topic", topic_name).strip("\n").splitlines()
    reported = described(summary)
    assert (reported["Topic"], reported["PartitionCount"], reported["ReplicationFactor"]) == (topic_name, "4", "3")
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", reported["TopicId"])
    assert set(reported["Configs"].split(",")) >= {"min.insync.replicas=2", "cleanup.policy=compact"}
    ids = {str(node_id) for node_id in cluster.node_ids}
    for number, line in enumerate(partitions):
        reported = described(line)
        assert reported["Partition"] == str(number)
        assert set(reported["Replicas"].split(",")) == set(reported["Isr"].split(",")) == ids
        assert reported["Leader"] == reported["Replicas"].split(",")[0]
        # KIP-966: shown by DescribeTopicPartitions, and empty while everybody is in sync.
        assert (reported["Elr"], reported["LastKnownElr"]) == ("", "")

    topics(cluster, "--alter", "--topic", topic_name, "--partitions", "6")
    wait_for(lambda: topics(cluster, "--describe", "--topic", topic_name).count("Partition: ") == 6, "six partitions")
    wait_in_sync(cluster, topic_name)
    assert topics(cluster, "--describe", "--under-replicated-partitions", "--topic", topic_name).strip() == ""

    topics(cluster, "--delete", "--topic", topic_name)
    wait_for(lambda: topic_name not in topics(cluster, "--list").split(), f"{topic_name} is gone")


def test_a_topic_with_given_replicas(cluster: Cluster, topic_name: str) -> None:
    first, second, third = cluster.node_ids[:3]
    create(cluster, topic_name, "--replica-assignment", f"{third}:{first},{second}:{third}")
    reported = metadata(cluster, first, (topic_name,)).topics[topic_name]
    assert [partition.replicas for partition in reported] == [(third, first), (second, third)]


def test_a_duplicate_and_an_unknown_topic_are_refused(cluster: Cluster, topic_name: str) -> None:
    create(cluster, topic_name)
    again = apache.try_tool(apache.TOPICS, "--bootstrap-server", cluster.bootstrap, "--create", "--topic", topic_name)
    assert again.returncode != 0
    assert "TopicExistsException" in again.stdout + again.stderr, again
    unknown = apache.try_tool(
        apache.TOPICS, "--bootstrap-server", cluster.bootstrap, "--describe", "--topic", f"{topic_name}-unknown"
    )
    assert unknown.returncode != 0
    assert "does not exist" in unknown.stdout + unknown.stderr, unknown


def test_topic_configs(cluster: Cluster, topic_name: str) -> None:
    create(cluster, topic_name)
    whose = ("--entity-type", "topics", "--entity-name", topic_name)
    configs(cluster, "--alter", *whose, "--add-config", "retention.ms=123456,cleanup.policy=[delete,compact]")

    def both_reported() -> bool:
        reported = configs(cluster, "--describe", *whose)
        return "retention.ms=123456" in reported and "cleanup.policy=delete,compact" in reported

    wait_for(both_reported, "both configs")
    configs(cluster, "--alter", *whose, "--delete-config", "retention.ms")
    wait_for(
        lambda: "retention.ms" not in configs(cluster, "--describe", *whose), "retention.ms is back at its default"
    )
    everything = configs(cluster, "--describe", "--all", *whose)
    assert "retention.ms=604800000 " in everything, everything
    assert (
        "segment.bytes=1073741824 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.bytes=1073741824}" in everything
    )

    wrong = apache.try_tool(
        apache.CONFIGS, "--bootstrap-server", cluster.bootstrap, "--alter", *whose, "--add-config", "retention.ms=soon"
    )
    assert wrong.returncode != 0
    assert "Invalid value soon" in wrong.stdout + wrong.stderr, wrong


def test_broker_configs(cluster: Cluster) -> None:
    node_id = str(cluster.node_ids[0])
    static = configs(cluster, "--describe", "--all", "--entity-type", "brokers", "--entity-name", node_id)
    assert f"node.id={node_id} " in static
    # Dynamic, cluster-wide; and taken back, for the other tests' sake.
    everybody = ("--entity-type", "brokers", "--entity-default")
    configs(cluster, "--alter", *everybody, "--add-config", "message.max.bytes=1500000")
    try:
        wait_for(
            lambda: "message.max.bytes=1500000" in configs(cluster, "--describe", *everybody), "the config is described"
        )
    finally:
        configs(cluster, "--alter", *everybody, "--delete-config", "message.max.bytes")
    wait_for(lambda: "message.max.bytes" not in configs(cluster, "--describe", *everybody), "the config is gone")


def test_metadata_quorum(cluster: Cluster) -> None:
    def quorum(*arguments: str) -> str:
        return apache.tool(
            apache.METADATA_QUORUM, "--bootstrap-server", cluster.bootstrap, "describe", *arguments
        ).stdout

    status = dict(re.findall(r"(\w+): +(.+)", quorum("--status")))
    assert int(status["LeaderId"]) == active_controller(cluster)
    assert int(status["HighWatermark"]) > 0
    assert int(status["LeaderEpoch"]) > 0
    voters = {int(found) for found in re.findall(r'"id": (\d+)', status["CurrentVoters"])}
    assert voters == set(cluster.node_ids)

    header, *rows = quorum("--replication").strip().splitlines()
    assert header.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert {int(row.split()[0]) for row in rows} == set(cluster.node_ids)
    assert sorted(row.split()[-1] for row in rows) == ["Follower", "Follower", "Leader"]


def test_features_and_api_versions(cluster: Cluster) -> None:
    features = apache.tool(apache.FEATURES, "--bootstrap-server", cluster.bootstrap, "describe").stdout
    finalized = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", features))
    assert finalized["eligible.leader.replicas.version"] == "1"
    assert re.match(r"4\.\d", finalized["metadata.version"])

    reported = apache.tool(apache.BROKER_API_VERSIONS, "--bootstrap-server", cluster.bootstrap).stdout
    for node_id in cluster.node_ids:
        assert "{}:{} (id: {} ".format(*cluster.address(node_id), node_id) in reported
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: \d+\]", reported)
    assert re.search(r"Fetch\(1\): 4 to \d+ \[usable: \d+\]", reported)


def test_log_dirs(cluster: Cluster, topic_name: str) -> None:
    create(cluster, topic_name, "--partitions", "1", "--replication-factor", "3")
    reported = apache.tool(
        apache.LOG_DIRS, "--bootstrap-server", cluster.bootstrap, "--describe", "--topic-list", topic_name
    ).stdout
    for node_id in cluster.node_ids:
        assert f'"broker":{node_id}' in reported.replace(" ", "")
    assert reported.count(f'"{topic_name}-0"') == 3


def test_a_reassignment_moves_the_data(cluster: Cluster, topic_name: str, tmp_path: Path) -> None:
    """One replica becomes three, then a single one elsewhere: files appear byte for byte, and go."""
    first, second, third = cluster.node_ids[:3]
    create(cluster, topic_name, "--replica-assignment", str(first), "--config", "segment.bytes=1048576")
    payload = tmp_path / "payload.txt"
    payload.write_text("".join(f"{number} {'x' * 1000}\n" for number in range(4000)))
    apache.tool(
        apache.CONSOLE_PRODUCER, "--bootstrap-server", cluster.bootstrap, "--topic", topic_name,
        stdin=payload.read_text(),
    )  # fmt: skip
    original = segments(cluster, first, topic_name)
    assert len(original) > 4_000_000

    def move(*replicas: int) -> None:
        plan = {"version": 1, "partitions": [{"topic": topic_name, "partition": 0, "replicas": list(replicas)}]}
        reported = apache.reassign(cluster.bootstrap, plan)
        assert f"Reassignment of partition {topic_name}-0 is completed." in reported, reported
        (partition,) = wait_in_sync(cluster, topic_name).topics[topic_name]
        assert partition.replicas == replicas

    move(third, first, second)
    for node_id in (first, second, third):
        assert segments(cluster, node_id, topic_name) == original, f"node {node_id}"

    move(second)
    assert metadata(cluster, first, (topic_name,)).leaders(topic_name) == {0: second}
    for node_id in (first, third):
        gone = cluster.log_directory(node_id) / f"{topic_name}-0"
        wait_for(lambda: not gone.exists(), f"{gone} is gone")  # noqa: B023 (called before `gone` changes)
    shown = apache.tool(
        apache.CONSOLE_CONSUMER, "--bootstrap-server", cluster.bootstrap, "--topic", topic_name, "--partition", "0",
        "--from-beginning", "--max-messages", "4000", "--timeout-ms", "30000",
    ).stdout  # fmt: skip
    assert shown == payload.read_text()


def test_an_impossible_reassignment_is_refused(cluster: Cluster, topic_name: str, tmp_path: Path) -> None:
    create(cluster, topic_name, "--replica-assignment", str(cluster.node_ids[0]))
    plan = tmp_path / "plan.json"
    plan.write_text(f'{{"version":1,"partitions":[{{"topic":"{topic_name}","partition":0,"replicas":[999]}}]}}')
    refused = apache.try_tool(
        apache.REASSIGN_PARTITIONS, "--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan),
        "--execute",
    )  # fmt: skip
    assert refused.returncode != 0
    assert "999" in refused.stdout + refused.stderr, refused


def test_preferred_leader_election(cluster: Cluster, topic_name: str) -> None:
    first, second, third = cluster.node_ids[:3]
    create(cluster, topic_name, "--replica-assignment", f"{first}:{second}:{third}")
    # Only the order changes: the leader stays, and is no longer the preferred one.
    replicas = [second, third, first]
    plan = {"version": 1, "partitions": [{"topic": topic_name, "partition": 0, "replicas": replicas}]}
    apache.reassign(cluster.bootstrap, plan)
    assert metadata(cluster, first, (topic_name,)).leaders(topic_name) == {0: first}

    def elect() -> str:
        return apache.tool(
            apache.LEADER_ELECTION, "--bootstrap-server", cluster.bootstrap, "--election-type", "preferred",
            "--topic", topic_name, "--partition", "0",
        ).stdout  # fmt: skip

    assert f"Successfully completed leader election (PREFERRED) for partitions {topic_name}-0" in elect()
    wait_for(
        lambda: metadata(cluster, third, (topic_name,)).leaders(topic_name) == {0: second}, "the preferred one leads"
    )
    assert f"Valid replica already elected for partitions {topic_name}-0" in elect()


def test_an_unclean_election_is_not_needed_while_somebody_leads(cluster: Cluster, topic_name: str) -> None:
    create(cluster, topic_name, "--replication-factor", "3")
    reported = apache.tool(
        apache.LEADER_ELECTION, "--bootstrap-server", cluster.bootstrap, "--election-type", "unclean",
        "--topic", topic_name, "--partition", "0",
    ).stdout  # fmt: skip
    assert f"Valid replica already elected for partitions {topic_name}-0" in reported
