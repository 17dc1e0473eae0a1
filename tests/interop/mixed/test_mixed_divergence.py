"""A divergence that a broker of each kind cuts after a broker of the other has led.

A round, once for each kind: the follower is paused, and the leader appends what it has alone then: with acks=1, in a
topic of its own, since acks=all would have no acknowledgement. The leader gets SIGKILL, the follower goes on, leads,
and appends other batches at these offsets. The former leader comes back, and must cut off what it has alone.

The load with acks=all goes on beside it, and is judged as always.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.cluster import metadata, wait_in_sync
from tests.interop.mixed.mixed_cluster import APACHE, TANIST, WHOSE, Kind, Member, MixedCluster
from tests.interop.mixed.watched_load import RECOVERY_S, Row, Watch, create_topic, files_of, wait_same_files, watched
from tests.interop.waiting import wait_for

pytestmark = pytest.mark.interop

CONTROLLER = 11
PAIR = {1: TANIST, 2: APACHE}
TOPIC = "diverging"
ALONE = 20
"""Records of the leader alone, a batch each. The follower may have the first few: their answer is under way to it."""


@pytest.mark.parametrize("controller", [APACHE, TANIST])
def test_each_kind_cuts_what_it_has_alone(controller: Kind, tmp_path: Path, new_row: Callable[[str], Row]) -> None:
    row = new_row(f"Divergence cut by each kind, {WHOSE[controller]} controller")
    members = {node_id: Member(kind, "broker") for node_id, kind in PAIR.items()}
    cluster = MixedCluster(tmp_path, members | {CONTROLLER: Member(controller, "controller")})
    cluster.start()
    try:
        create_topic(cluster, TOPIC, 1, 2, {"min.insync.replicas": "1"})
        wait_in_sync(cluster, TOPIC)
        # Of two replicas both must acknowledge.
        with watched(cluster, row, partitions=2, replicas=2) as watch:
            cut = []
            for _ in range(2 * row.rounds):
                watch.wait_calm()
                wait_in_sync(cluster, TOPIC)
                (leader,) = metadata(cluster, 1, (TOPIC,)).leaders(TOPIC).values()
                diverge(watch, leader, 3 - leader)
                cut.append(PAIR[leader])
            assert cut.count(APACHE) == cut.count(TANIST) == row.rounds
    finally:
        cluster.stop()


def diverge(watch: Watch, leader: int, follower: int) -> None:
    cluster = watch.cluster
    write(cluster, leader, 5)
    wait_same_files(cluster, TOPIC)
    cluster.send(follower, signal.SIGSTOP)
    write(cluster, leader, ALONE)
    cluster.kill_node(leader)
    watch.row.faults += 2
    before = log_of(cluster, leader)
    cluster.send(follower, signal.SIGCONT)
    wait_for(lambda: leads(cluster, follower), f"{follower} leads", timeout_s=RECOVERY_S)
    position = len(log_of(cluster, follower))
    assert before.startswith(log_of(cluster, follower))
    assert len(before) - position > ALONE // 2 * 61, "the leader has hardly anything alone"
    write(cluster, follower, ALONE)
    cluster.start_node(leader)
    watch.wait_acknowledged("by both")
    wait_in_sync(cluster, TOPIC, timeout_s=RECOVERY_S)
    assert not wait_same_files(cluster, TOPIC)
    after = log_of(cluster, leader)
    assert after[:position] == before[:position]
    assert after[position : len(before)] != before[position:], "nothing was cut"


def write(cluster: MixedCluster, leader: int, count: int) -> None:
    """Records that only their leader has to acknowledge, a batch each."""
    from confluent_kafka import Producer

    failures: list[object] = []
    host, port = cluster.address(leader)
    producer = Producer({"bootstrap.servers": f"{host}:{port}", "acks": 1, "enable.idempotence": False})
    for number in range(count):
        producer.produce(
            TOPIC,
            b"of %d: %d" % (leader, number),
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        assert producer.flush(20) == 0, f"{leader} does not acknowledge"
    assert not failures, failures


def leads(cluster: MixedCluster, node_id: int) -> bool:
    return metadata(cluster, node_id, (TOPIC,)).leaders(TOPIC) == {0: node_id}


def log_of(cluster: MixedCluster, node_id: int) -> bytes:
    return b"".join(files_of(cluster, node_id, TOPIC, 0).values())
