"""Dynamic quorums across kinds (KIP-853): controllers of ours and of Apache Kafka join one quorum, by Apache's own
tool, while records are written; the first leader is removed, and all that was acknowledged is there.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tanist.wire.ids import id_from_text
from tests.interop import apache
from tests.interop.cluster import HOST, metadata, wait_ready
from tests.interop.mixed.dynamic_quorum import DynamicCluster, Kind
from tests.interop.mixed.mixed_cluster import APACHE, TANIST, Member, MixedCluster
from tests.interop.mixed.quorum_voters import described_voters
from tests.interop.waiting import wait_for

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(apache.missing() is not None, reason=str(apache.missing())),
]
TOPIC = "kept"


class Load:
    """acks=all records, one after the other, until `stop`; what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.acknowledged: list[bytes] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all", "enable.idempotence": True})
        number = 0

        def delivered(error: object, message: object) -> None:
            if error is None:
                self.acknowledged.append(message.value())  # type: ignore[attr-defined]

        while not self._ending.is_set():
            producer.produce(TOPIC, value=b"%d" % number, on_delivery=delivered)
            number += 1
            producer.flush(30)

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()


def read_all(bootstrap: str, count: int) -> set[bytes]:
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    found: set[bytes] = set()

    def complete() -> bool:
        for message in consumer.consume(1000, 1.0):
            if message.error() is None and message.value() is not None:
                found.add(bytes(message.value()))
        return len(found) >= count

    try:
        wait_for(complete, f"{count} records are read", timeout_s=60)
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("kinds", [("ours", "ours", "ours"), ("ours", "apache", "ours"), ("apache", "ours", "ours")])
def test_controllers_join_and_leave_under_load(kinds: tuple[Kind, ...], tmp_path: Path) -> None:
    cluster = DynamicCluster(tmp_path / "cluster", kinds)
    cluster.format()
    try:
        cluster.start()
        wait_ready(cluster, timeout_s=120)
        apache.tool(
            apache.TOPICS,
            *("--bootstrap-server", cluster.bootstrap, "--create", "--topic", TOPIC),
            *("--partitions", "3", "--replication-factor", "3", "--config", "min.insync.replicas=2"),
        )
        load = Load(cluster.bootstrap)
        try:
            assert cluster.voters() == {1}
            for node_id in (2, 3):
                cluster.add(node_id)
            assert cluster.voters() == {1, 2, 3}
            cluster.remove(1)
            wait_for(lambda: cluster.voters() == {2, 3}, "another leads, without 1", timeout_s=60)
            cluster.add(1)
            assert cluster.voters() == {1, 2, 3}
        finally:
            load.stop()
        assert len(load.acknowledged) > 100
        assert set(load.acknowledged) <= read_all(cluster.bootstrap, len(load.acknowledged))
        assert metadata(cluster, 2, ()).brokers.keys() == {1, 2, 3}
    finally:
        cluster.stop()


@pytest.mark.parametrize("kinds", [("apache", "ours"), ("ours", "apache")])
def test_controllers_join_by_themselves(kinds: tuple[Kind, ...], tmp_path: Path) -> None:
    """`controller.quorum.auto.join.enable`: ours asks Apache Kafka's leader, and Apache Kafka's asks ours."""
    cluster = DynamicCluster(tmp_path / "cluster", kinds, {"controller.quorum.auto.join.enable": "true"})
    cluster.format()
    addresses = [(HOST, member.controller_port) for member in cluster.members.values()]
    wanted = {member.node_id: id_from_text(member.directory_id) for member in cluster.members.values()}

    def joined() -> bool:
        found = described_voters(addresses)
        return found is not None and found[1] == wanted

    try:
        cluster.start()
        wait_for(joined, "both are voters", timeout_s=180)
    finally:
        cluster.stop()


def test_an_apache_leader_upgrades_kraft_version_over_voters_of_ours(tmp_path: Path) -> None:
    """Its leader knows our voters' directories and versions by UpdateRaftVoter, which they send with version 0."""
    members = {1: Member(APACHE), 2: Member(TANIST), 3: Member(TANIST)}
    cluster = MixedCluster(tmp_path, members)
    cluster.start()
    try:
        addresses = [(HOST, member.port + 1) for member in members.values()]

        def apache_leads() -> bool:
            found = described_voters(addresses)
            if found is not None and found[0] not in (-1, 1):
                cluster.stop_node(found[0])  # it hands over, and the others elect
                cluster.start_node(found[0])
            return found is not None and found[0] == 1

        def upgraded() -> bool:
            arguments = ("--bootstrap-server", cluster.bootstrap, "upgrade", "--feature", "kraft.version=1")
            return apache.try_tool(apache.FEATURES, *arguments).returncode == 0

        wait_for(apache_leads, "the controller of Apache Kafka leads", timeout_s=240, poll_s=2.0)
        wait_for(upgraded, "kraft.version is 1", timeout_s=120)
        _, voters = wait_for(lambda: described_voters(addresses), "a leader describes its voters")
        assert {node_id: each.int != 0 for node_id, each in voters.items()} == dict.fromkeys((1, 2, 3), True)
    finally:
        cluster.stop()
