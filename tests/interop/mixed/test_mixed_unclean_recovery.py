"""Unclean Recovery of Apache Kafka's brokers, unmodified, by our controllers, with each strategy.

The brokers are killed one after the other, and records are acknowledged in between: 3 has 20, 2 has 30, 1 has all 35.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.mixed.mixed_cluster import APACHE, TANIST, Member, MixedCluster
from tests.interop.mixed.records import consume, partition, produce, wait_isr, wait_leader, wait_same_bytes
from tests.interop.tanist_cluster import tanist

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

CONTROLLER = 11
STRATEGIES = ("Balanced", "Aggressive", "None")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    members = {each: Member(APACHE, "broker") for each in (1, 2, 3)} | {CONTROLLER: Member(TANIST, "controller")}
    grace = {"tanist.unclean.recovery.grace.ms": "120000"}
    cluster = MixedCluster(tmp_path, members, properties=grace)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def values(first: int, end: int) -> list[str]:
    return [f"record-{number}" for number in range(first, end)]


def compared(cluster: MixedCluster, topic: str) -> str:
    """What the controller said of the election."""
    lines = [line for line in cluster.log(CONTROLLER).splitlines() if f"POSSIBLE DATA LOSS: {topic}-0" in line]
    return lines[-1] if lines else ""


def test_each_strategy_over_apache_brokers(cluster: MixedCluster) -> None:
    for topic in STRATEGIES:
        tanist(
            "topics", "create", topic, "--replica-assignment", "1:2:3", "--config", "min.insync.replicas=1",
            "--config", f"unclean.recovery.strategy={topic}", "--bootstrap", cluster.bootstrap,
        )  # fmt: skip
        wait_isr(cluster, topic, {1, 2, 3})
    for killed, first, end in ((3, 0, 20), (2, 20, 30), (1, 30, 35)):
        for topic in STRATEGIES:
            produce(cluster, topic, values(first, end))
        cluster.kill_node(killed)
        for topic in STRATEGIES if killed > 1 else ():
            wait_isr(cluster, topic, set(range(1, killed)))

    # Aggressive does without 1, which does not come back for now, and takes the more complete of the other two.
    cluster.start_node(3)
    cluster.start_node(2)
    assert wait_leader(cluster, "Aggressive", timeout_s=300) == 2
    assert "2: epoch 0 end 30" in compared(cluster, "Aggressive")
    assert "3: epoch 0 end 20" in compared(cluster, "Aggressive")
    assert consume(cluster, "Aggressive") == values(0, 30)  # the five of 1 alone are lost, and reported
    for topic in ("Balanced", "None"):
        state = partition(cluster, topic)
        assert state is not None
        assert state.leader < 0

    # Balanced has waited for 1, the last one that was eligible. It lost nothing, so nothing is lost.
    cluster.start_node(1)
    assert wait_leader(cluster, "Balanced", timeout_s=300) == 1
    assert "1: epoch 0 end 35" in compared(cluster, "Balanced")
    assert consume(cluster, "Balanced") == values(0, 35)

    # None waits for an operator.
    state = partition(cluster, "None")
    assert state is not None
    assert state.leader < 0
    tanist("elect", "--type", "unclean", "--topic", "None", "--partition", "0", "--bootstrap", cluster.bootstrap)
    assert wait_leader(cluster, "None") == 1
    assert consume(cluster, "None") == values(0, 35)

    for topic in STRATEGIES:
        wait_isr(cluster, topic, {1, 2, 3})
        wait_same_bytes(cluster, topic)
        produce(cluster, topic, ["after"])
        assert consume(cluster, topic)[-1] == "after"
    said = [line for line in cluster.log(CONTROLLER).splitlines() if "does not have GetReplicaLogInfo" in line]
    assert {f"broker {each} " in "\n".join(said) for each in (1, 2, 3)} == {True}
