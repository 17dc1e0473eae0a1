"""Groups of both protocols whose coordinator moves between brokers of the two kinds.

Members without number of one group after the other, while the brokers that coordinate them get SIGKILL in turn
(`tests.faults.group_rounds` judges what they hear); and confluent-kafka's consumers, whose committed offsets must be
those that the other kind's coordinator goes on with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tanist.wire.internal_topics import OFFSETS_TOPIC
from tests.clients.samples import samples
from tests.faults.group_rounds import PROPERTIES, run
from tests.interop import apache
from tests.interop.cluster import metadata, wait_in_sync
from tests.interop.mixed.mixed_cluster import APACHE, TANIST, WHOSE, Kind, Member, MixedCluster
from tests.interop.mixed.watched_load import Row
from tests.interop.test_interop_groups import PROTOCOLS, TOPIC, committed, read_and_commit
from tests.interop.traffic import enlarged, produce
from tests.interop.waiting import wait_for

pytestmark = pytest.mark.interop

CONTROLLER = 11
BROKERS: dict[int, Kind] = {1: TANIST, 2: APACHE, 3: TANIST}
SECONDS_A_ROUND = 60.0
READ_A_TURN = 10
LEAST = {"group.consumer.min.session.timeout.ms": "6000", "group.consumer.min.heartbeat.interval.ms": "500"}
"""Apache Kafka refuses sessions as short as those of `PROPERTIES` otherwise."""
ONE_PARTITION = {**PROPERTIES, "offsets.topic.num.partitions": "1"}


def cluster_of(folder: Path, controller: Kind, properties: dict[str, str]) -> MixedCluster:
    members = {node_id: Member(kind, "broker") for node_id, kind in BROKERS.items()}
    members[CONTROLLER] = Member(controller, "controller")
    return MixedCluster(folder, members, properties=properties | LEAST)


@pytest.mark.parametrize("controller", [APACHE, TANIST])
def test_coordinators_of_both_kinds_die(controller: Kind, tmp_path: Path, new_row: Callable[[str], Row]) -> None:
    row = new_row(f"Coordinators of groups get SIGKILL, {WHOSE[controller]} controller")
    cluster = cluster_of(tmp_path, controller, PROPERTIES)
    cluster.start()
    try:
        account = run(cluster, seconds=row.rounds * SECONDS_A_ROUND, members=12, groups=4, kill_every_s=15.0)
    finally:
        cluster.stop()
    print(account)
    row.faults, row.acknowledged = account.kills, account.counts["commits acknowledged"]
    row.other_anomalies = len(account.violations)
    row.note = "acknowledged: commits of offsets"
    assert account.passed, str(account)
    assert {BROKERS[node_id] for node_id in account.victims} == {APACHE, TANIST}


@pytest.mark.parametrize("controller", [APACHE, TANIST])
def test_offsets_are_kept_when_the_coordinator_moves(
    controller: Kind, tmp_path: Path, new_row: Callable[[str], Row]
) -> None:
    row = new_row(f"Offsets kept across coordinators of both kinds, {WHOSE[controller]} controller")
    cluster = cluster_of(tmp_path, controller, ONE_PARTITION)
    cluster.start()
    try:
        turns = 1 + 2 * row.rounds
        apache.tool(
            apache.TOPICS, "--bootstrap-server", cluster.bootstrap, "--create", "--topic", TOPIC,
            "--replication-factor", "3", "--partitions", "1",
        )  # fmt: skip
        produce(cluster, TOPIC, enlarged(samples(READ_A_TURN * turns)))
        for protocol in PROTOCOLS:  # for the topic of offsets to be there
            assert read_and_commit(cluster, f"group-{protocol}", protocol, READ_A_TURN) == list(range(READ_A_TURN))
        coordinators = [coordinator(cluster)]
        for turn in range(1, turns):
            coordinators.append(next(each for each in BROKERS if BROKERS[each] != BROKERS[coordinators[-1]]))
            let_coordinate(cluster, coordinators[-1])
            row.faults += 1
            for protocol in PROTOCOLS:
                group = f"group-{protocol}"
                assert committed(cluster, group) == str(READ_A_TURN * turn)
                expected = list(range(READ_A_TURN * turn, READ_A_TURN * (turn + 1)))
                assert read_and_commit(cluster, group, protocol, READ_A_TURN) == expected
                row.acknowledged += 1
        assert all(BROKERS[before] != BROKERS[after] for before, after in pairwise(coordinators))
        row.note = "acknowledged: commits of offsets"
    finally:
        cluster.stop()


def coordinator(cluster: MixedCluster) -> int:
    wait_in_sync(cluster, OFFSETS_TOPIC, timeout_s=90)
    return metadata(cluster, 1, (OFFSETS_TOPIC,)).leaders(OFFSETS_TOPIC)[0]


def let_coordinate(cluster: MixedCluster, node_id: int) -> None:
    """It becomes the preferred leader of the topic of offsets, and is elected."""
    others: Sequence[int] = [each for each in BROKERS if each != node_id]
    plan = {"version": 1, "partitions": [{"topic": OFFSETS_TOPIC, "partition": 0, "replicas": [node_id, *others]}]}
    apache.reassign(cluster.bootstrap, plan)
    apache.try_tool(
        apache.LEADER_ELECTION, "--bootstrap-server", cluster.bootstrap, "--election-type", "preferred",
        "--topic", OFFSETS_TOPIC, "--partition", "0",
    )  # fmt: skip
    wait_for(lambda: coordinator(cluster) == node_id, f"{node_id} coordinates", timeout_s=60)
