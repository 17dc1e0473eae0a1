"""`controller.quorum.auto.join.enable` on live nodes (KIP-853): controllers make themselves voters, and one whose disk
was lost takes the place of its former self. Processes of ours only; `tests/interop/mixed` has those of Apache Kafka.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.wire.ids import id_from_text
from tests.interop.cluster import HOST
from tests.interop.mixed.dynamic_quorum import DynamicCluster
from tests.interop.mixed.quorum_voters import described_voters
from tests.interop.tanist_cluster import tanist
from tests.interop.waiting import wait_for

PATIENCE_S = 120.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DynamicCluster]:
    properties = {"controller.quorum.auto.join.enable": "true"}
    cluster = DynamicCluster(tmp_path, ("ours", "ours", "ours"), properties)
    cluster.format()
    cluster.start()
    yield cluster
    cluster.stop()


def await_voters(cluster: DynamicCluster) -> int:
    """Every controller is a voter, with the directory that it has; the leader."""
    addresses = [(HOST, member.controller_port) for member in cluster.members.values()]

    def joined() -> int | None:
        found = described_voters(addresses)
        wanted = {member.node_id: id_from_text(member.directory_id) for member in cluster.members.values()}
        return found[0] if found is not None and found[1] == wanted else None

    return wait_for(joined, "all controllers are voters", timeout_s=PATIENCE_S)


@pytest.mark.long
def test_controllers_join_by_themselves_and_one_replaces_its_lost_disk(cluster: DynamicCluster) -> None:
    leader = await_voters(cluster)
    lost = next(node_id for node_id in cluster.members if node_id != leader)
    member = cluster.members[lost]
    before = member.directory_id
    cluster_id = next(
        line.partition("=")[2]
        for line in (member.folder / "data" / "meta.properties").read_text().splitlines()
        if line.startswith("cluster.id=")
    )
    cluster.kill_node(lost)
    shutil.rmtree(member.folder / "data")
    file = str(member.properties_file)
    tanist("format", "--config", file, "--cluster-id", cluster_id, "--no-initial-controllers")
    assert member.directory_id != before
    cluster.start_node(lost)
    leader = await_voters(cluster)
    # A majority of three is two of them, so each of them counts.
    cluster.kill_node(leader)
    others = [(HOST, each.controller_port) for each in cluster.members.values() if each.node_id != leader]

    def succeeded() -> set[int] | None:
        found = described_voters(others)
        return None if found is None or found[0] == leader else set(found[1])

    assert wait_for(succeeded, "another one leads", timeout_s=PATIENCE_S) == {1, 2, 3}
