"""A dynamic cluster of Apache Kafka, rolled to tanist and back by `tanist migrate`, under acks=all load.

`TRANSCRIPTS=rewrite` writes the first step of each direction down in docs/migrate.md; otherwise its shape is compared.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.runtime.client.client import Client
from tanist.runtime.client.connection import ANYBODY
from tanist.runtime.migration.nodes import APACHE, TANIST, read_cluster
from tests.faults.history import longest_gap_s
from tests.faults.load import Load, read_all
from tests.faults.recorded import judged
from tests.faults.rounds import PARTITIONS, TOPIC, create_topic, differences
from tests.interop.cluster import HOST, wait_in_sync, wait_ready
from tests.interop.migrate.rolling import Shell, block, shape
from tests.interop.migrate.transactions import Transactions, create_settled
from tests.interop.mixed.dynamic_quorum import DynamicCluster

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java", "libraries")]

PAGE = Path(__file__).parents[3] / "docs" / "migrate.md"
NAME = "a roll and back, written by tests/interop/migrate"
RATE = 200.0
ONE_IN_FLIGHT = {"max.in.flight.requests.per.connection": 1}
"""With more, librdkafka may write a record twice when leaders change (docs/interop.md, Faults)."""
INTERNAL = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "num.io.threads": "4",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DynamicCluster]:
    cluster = DynamicCluster(tmp_path / "cluster", ("apache", "apache", "apache"), properties=INTERNAL)
    cluster.format()
    try:
        cluster.start()
        wait_ready(cluster, timeout_s=120)
        for node_id in (2, 3):
            cluster.add(node_id)
        yield cluster
    finally:
        cluster.stop()


def software(cluster: DynamicCluster) -> dict[int, str | None]:
    with Client([(HOST, member.port) for member in cluster.members.values()]) as client:
        return {node_id: node.software for node_id, node in read_cluster(client, ANYBODY).nodes.items()}


def ask_both_sides(shell: Shell, of_each: tuple[int, int]) -> None:
    """Apache's tools say the same whichever kind of node they ask."""
    quorums = [shell.quorum(node_id) for node_id in of_each]
    assert quorums == [{1, 2, 3}, {1, 2, 3}]
    topics = [shell.topic(node_id, TOPIC) for node_id in of_each]
    assert topics[0] == topics[1]
    assert len(topics[0]) == PARTITIONS


def roll(shell: Shell, command: str, *more: str) -> None:
    """All three nodes, one after the other, with the same output of each step; Apache's tools in between, asked of a
    node of each kind."""
    target = TANIST if command == "next" else APACHE
    steps = []
    for done in (1, 2, 3):
        steps.append(shape(shell.migrate(command, *more, shown=done == 1)))
        kinds = software(shell.cluster)
        changed = [node_id for node_id, kind in kinds.items() if kind == target]
        others = [node_id for node_id in kinds if node_id not in changed]
        assert len(changed) == done
        if done == 1:
            ask_both_sides(shell, (changed[0], others[0]))
        else:
            assert shell.quorum(changed[-1]) == {1, 2, 3}
            if others:
                assert shell.topic(changed[-1], TOPIC) == shell.topic(others[0], TOPIC)
    goes_on = f"N of N nodes on {target}; next: node N"
    assert [step[-1] for step in steps] == [goes_on, goes_on, f"N of N nodes on {target}; the roll is complete"]
    assert steps[1][:-1] == steps[2][:-1] == steps[0][:-1]


def test_a_cluster_is_rolled_over_and_back_under_load(cluster: DynamicCluster) -> None:
    create_topic(cluster)
    shell = Shell(cluster)
    assert set(software(cluster).values()) == {APACHE}
    create_settled(cluster)
    load = Load(cluster, TOPIC, PARTITIONS, RATE, dict(ONE_IN_FLIGHT))
    transactions = Transactions(cluster)
    began_s = time.monotonic()
    load.start()
    transactions.start()
    try:
        shell.migrate("plan")
        shell.migrate("check")
        roll(shell, "next", "--properties", shell.properties, "--stop", "systemctl stop kafka")
        assert set(software(cluster).values()) == {TANIST}
        shell.migrate("plan", "--back")
        roll(shell, "back", "--stop", "systemctl stop tanist", "--start", "systemctl start kafka")
        assert set(software(cluster).values()) == {APACHE}
    finally:
        try:
            load.stop()
        finally:
            transactions.stop()
    ended_s = time.monotonic()
    wait_in_sync(cluster, TOPIC)
    verdict, anomalies = judged(TOPIC, load.acks, read_all(cluster, TOPIC, PARTITIONS), load.sent)
    unequal = differences(cluster)
    found = transactions.read()
    silence_s = longest_gap_s([ack.at_s for ack in load.acks], began_s, ended_s)
    worst_s = max(
        longest_gap_s([ack.at_s for ack in load.acks if ack.partition == partition], began_s, ended_s)
        for partition in range(PARTITIONS)
    )
    print(
        f"{len(load.acks)} acknowledged in {ended_s - began_s:.0f} s, {len(anomalies)} anomalies, "
        f"{len(load.errors)} errors, longest silence {silence_s:.2f} s, of a partition {worst_s:.2f} s, "
        f"{len(unequal)} replicas differ; {len(transactions.committed)} records in committed transactions, "
        f"{len(transactions.aborted)} in aborted ones"
    )
    assert anomalies == []
    assert load.errors == []
    assert unequal == []
    assert sorted(found) == sorted(transactions.committed)
    assert len(transactions.committed) > 100
    assert len(transactions.aborted) > 10
    assert verdict.acknowledged == len(load.acks) > 1000
    shell.printed.append(
        f"# {verdict.acknowledged} acknowledged, 0 lost, 0 duplicated, 0 out of order; "
        f"longest silence {silence_s:.1f} s; all replicas' files the same"
    )
    shell.printed.append(
        f"# {len(transactions.committed)} records in committed transactions, each read once; "
        f"{len(transactions.aborted)} in aborted ones, none read"
    )
    session = "\n".join(shell.printed) + "\n"
    if os.environ.get("TRANSCRIPTS") == "rewrite":
        _, start, end = block(PAGE, NAME)
        text = PAGE.read_text()
        PAGE.write_text(text[:start] + session + text[end:])
    assert shape(session) == shape(block(PAGE, NAME)[0])
