"""Partitions move between brokers of the two kinds by `kafka-reassign-partitions --throttle`, under load.

A round: from Apache's brokers to ours and back. The throttle holds: a move takes as long as it must at that rate, and
its configurations are gone when the tool has verified it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.interop.apache import CONFIGS, PRODUCER_PERFORMANCE, REASSIGN_PARTITIONS, tool
from tests.interop.cluster import wait_in_sync
from tests.interop.mixed.mixed_cluster import APACHE, TANIST, WHOSE, Kind, Member, MixedCluster
from tests.interop.mixed.watched_load import RECOVERY_S, TOPIC, Row, create_topic, wait_same_files, watched
from tests.interop.waiting import wait_for

pytestmark = pytest.mark.interop

CONTROLLER = 11
THEIRS, OURS = (1, 2), (3, 4)
BULK = "bulk"
BULK_BYTES = 30_000_000
RATE = 1_000_000
FREE_S = 10
"""Kafka's quotas look at the last ten seconds: that much goes at once."""
LEAST_S = BULK_BYTES / RATE - FREE_S
PARTITIONS = 2


@pytest.mark.parametrize("controller", [APACHE, TANIST])
def test_a_throttled_move_between_kinds(controller: Kind, tmp_path: Path, new_row: Callable[[str], Row]) -> None:
    row = new_row(f"Throttled reassignment between kinds, {WHOSE[controller]} controller")
    members = {node_id: Member(APACHE if node_id in THEIRS else TANIST, "broker") for node_id in (*THEIRS, *OURS)}
    members[CONTROLLER] = Member(controller, "controller")
    # Followers that fetch a megabyte at a time would leave the rate by as much.
    cluster = MixedCluster(tmp_path, members, properties={"replica.fetch.max.bytes": "262144"})
    cluster.start()
    try:
        for topic in (TOPIC, BULK):
            create_topic(cluster, topic, PARTITIONS, 2)
            move(cluster, tmp_path, topic, THEIRS)
        tool(
            PRODUCER_PERFORMANCE, "--topic", BULK, "--num-records", str(BULK_BYTES // 1000), "--record-size", "1000",
            "--throughput", "-1", "--bootstrap-server", cluster.bootstrap,
        )  # fmt: skip
        with watched(cluster, row, partitions=PARTITIONS, create=False) as watch:
            for _ in range(row.rounds):
                for target in (OURS, THEIRS):
                    row.faults += 1
                    began_s = time.monotonic()
                    move(cluster, tmp_path, BULK, target, RATE)
                    took_s = time.monotonic() - began_s
                    # Each source sends half of it, or one all of it: two replicas are made, of two partitions.
                    assert took_s > LEAST_S, f"{BULK_BYTES} bytes in {took_s:.1f} s at {RATE} a second"
                    move(cluster, tmp_path, TOPIC, target)
                    watch.wait_acknowledged("after the move")
                    assert not wait_same_files(cluster, BULK)
    finally:
        cluster.stop()


def move(cluster: MixedCluster, folder: Path, topic: str, target: Sequence[int], rate: int | None = None) -> None:
    """By Apache's tool, until it has verified that it is done; leaders in turn."""
    plan = folder / "plan.json"
    partitions = [
        {"topic": topic, "partition": number, "replicas": [*target[number:], *target[:number]]}
        for number in range(PARTITIONS)
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    common = ("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan))
    throttle = () if rate is None else ("--throttle", str(rate))
    tool(REASSIGN_PARTITIONS, *common, "--execute", *throttle)
    if rate is not None:
        assert throttles(cluster, topic), "the tool has set no throttle"
    wait_for(
        lambda: "is still in progress" not in tool(REASSIGN_PARTITIONS, *common, "--verify").stdout,
        f"{topic} has moved to {target}",
        timeout_s=RECOVERY_S,
    )
    wait_in_sync(cluster, topic, timeout_s=RECOVERY_S)
    assert not throttles(cluster, topic), "the throttle is still there"


def throttles(cluster: MixedCluster, topic: str) -> list[str]:
    """The configurations of a throttle that are set, of the topic and of brokers."""
    at = ("--bootstrap-server", cluster.bootstrap, "--describe")
    reported = tool(CONFIGS, *at, "--entity-type", "topics", "--entity-name", topic).stdout
    reported += tool(CONFIGS, *at, "--entity-type", "brokers", "--entity-name", "1").stdout
    return [word for word in reported.split() if "throttled" in word and "=" in word]
