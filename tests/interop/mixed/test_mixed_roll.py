"""A cluster of Apache Kafka is rolled over to tanist by hand, node by node on the same folders, and back, under load.

Calm (each node stops in order), and with SIGKILL. A round is the whole way there and back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.mixed.mixed_cluster import APACHE, TANIST, Member, MixedCluster, Quorum
from tests.interop.mixed.watched_load import Row, watched

pytestmark = pytest.mark.interop

NODES = (1, 2, 3)


@pytest.mark.parametrize("quorum", ["static", "dynamic"])
@pytest.mark.parametrize("how", ["calm", "SIGKILL"])
def test_over_and_back(how: str, quorum: Quorum, tmp_path: Path, new_row: Callable[[str], Row]) -> None:
    row = new_row(f"Roll over and back, {how}, {quorum} quorum")
    cluster = MixedCluster(tmp_path, {node_id: Member(APACHE) for node_id in NODES}, quorum=quorum)
    cluster.start()
    try:
        end = cluster.stop_node if how == "calm" else cluster.kill_node
        with watched(cluster, row) as watch:
            for _ in range(row.rounds):
                for kind in (TANIST, APACHE):
                    for node_id in NODES:
                        cluster.becomes(node_id, kind)  # when it is started again
                        watch.strike(node_id, end)
                    assert set(cluster.of(kind)) == set(NODES)
    finally:
        cluster.stop()
