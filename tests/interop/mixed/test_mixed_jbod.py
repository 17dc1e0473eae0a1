"""Two log directories on each broker, of which one fails while the broker runs: a broker of each kind, under load.

A round, once for each kind: the second directory is taken away beneath the broker. Its replicas there go offline and
their leaders move; those in the first directory stay in sync. Then the broker is stopped, gets its directory back, and
is in sync.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.apache import LOG_DIRS, tool
from tests.interop.mixed.mixed_cluster import APACHE, TANIST, WHOSE, Kind, Member, MixedCluster
from tests.interop.mixed.partition_states import wait_each
from tests.interop.mixed.watched_load import Row, Watch, watched

pytestmark = pytest.mark.interop

CONTROLLER = 11
BROKERS: dict[int, Kind] = {1: TANIST, 2: APACHE, 3: TANIST}
PARTITIONS = 6
PROPERTIES = {
    # Both kinds notice that a directory is gone when they write a checkpoint there.
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "1000",
}


@pytest.mark.parametrize("controller", [APACHE, TANIST])
def test_a_directory_of_each_kind_fails(controller: Kind, tmp_path: Path, new_row: Callable[[str], Row]) -> None:
    row = new_row(f"JBOD, a directory of each kind fails, {WHOSE[controller]} controller")
    members = {node_id: Member(kind, "broker") for node_id, kind in BROKERS.items()}
    members[CONTROLLER] = Member(controller, "controller")
    cluster = MixedCluster(tmp_path, members, log_dirs=2, properties=PROPERTIES)
    cluster.start()
    try:
        with watched(cluster, row, partitions=PARTITIONS) as watch:
            watch.wait_calm()
            for node_id in BROKERS:
                assert 0 < len(partitions_in(watch, node_id, 1)) < PARTITIONS
            reported = tool(LOG_DIRS, "--bootstrap-server", cluster.bootstrap, "--describe").stdout
            for node_id in BROKERS:
                assert all(f'"logDir":"{folder}"' in reported for folder in cluster.log_directories(node_id))
            for _ in range(row.rounds):
                for node_id in (1, 2):
                    fail_directory(watch, node_id)
    finally:
        cluster.stop()


def partitions_in(watch: Watch, node_id: int, which: int) -> set[int]:
    """The topic's partitions in one of the node's directories."""
    folder = watch.cluster.log_directories(node_id)[which]
    return {int(path.name.rpartition("-")[2]) for path in folder.glob(f"{watch.topic}-[0-9]*")}


def fail_directory(watch: Watch, node_id: int) -> None:
    cluster = watch.cluster
    watch.wait_calm()
    lost = partitions_in(watch, node_id, 1)
    kept = partitions_in(watch, node_id, 0)
    assert lost | kept == set(range(watch.partitions))
    folder = cluster.log_directories(node_id)[1]
    away = folder.with_name("taken-away")
    folder.rename(away)
    folder.write_text("no directory\n")
    watch.row.faults += 1
    wait_each(
        watch,
        f"the replicas of {node_id} in its second directory are out of the ISR, and no others",
        lambda partition, state: (node_id in state.isr) == (partition in kept) and state.leader >= 0,
    )
    assert cluster.pid(node_id) is not None
    watch.wait_acknowledged(f"without the second directory of {node_id}")
    cluster.stop_node(node_id)
    folder.unlink()
    away.rename(folder)
    watch.wait_acknowledged(f"without {node_id}")
    cluster.start_node(node_id)
    wait_each(watch, f"{node_id} is in sync again", lambda _, state: node_id in state.isr)
    assert partitions_in(watch, node_id, 1) == lost
