"""Groups of both protocols in a folder that changes hands: from Apache Kafka to us, and back.

The broker that takes the folder over knows what was committed, and which static members there were. Our records in
`__consumer_offsets`, `kafka-dump-log --offsets-decoder` reads, each kind of record.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tanist.wire.internal_topics import OFFSETS_TOPIC
from tests.clients.samples import samples
from tests.interop import apache
from tests.interop.cluster import Cluster, free_ports, wait_in_sync
from tests.interop.dump import decoded
from tests.interop.tanist_cluster import TanistNode
from tests.interop.traffic import create_topic, enlarged, produce
from tests.interop.waiting import wait_for

pytestmark = pytest.mark.interop

TOPIC = "read-by-groups"
PROTOCOLS = ("classic", "consumer")
SETTLE_S = 60.0
# Static members must be remembered through a handover, even on a machine that is busy.
SESSION_MS = 300_000
PROPERTIES = {
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.max.session.timeout.ms": str(SESSION_MS),
}
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
# By the type of their keys: a commit, a classic group, then a consumer group, its member, the epoch of its target, a
# member's target, a member's current assignment, and a regular expression's topics.
KINDS = {"1", "2", "3", "5", "6", "7", "8", "16"}


@contextmanager
def member(cluster: Cluster, group: str, protocol: str, subscription: str) -> Iterator[Any]:
    """A consumer in a group, with a static id: the group remembers it when it is gone, and so must its next owner."""
    from confluent_kafka import Consumer

    session = {"session.timeout.ms": SESSION_MS} if protocol == "classic" else {}
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "group.instance.id": f"static-{subscription}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **session,
        }
    )
    consumer.subscribe([subscription])
    try:
        yield consumer
    finally:
        consumer.close()


def read_and_commit(cluster: Cluster, group: str, protocol: str, count: int, subscription: str = TOPIC) -> list[int]:
    """As a member, the offsets of the next `count` records, the last of which is committed."""
    found: list[Any] = []
    with member(cluster, group, protocol, subscription) as consumer:

        def enough() -> bool:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append(message)
            return len(found) == count

        wait_for(enough, f"{count} records are read", timeout_s=SETTLE_S)
        consumer.commit(found[-1], asynchronous=False)
    return [message.offset() for message in found]


def committed(cluster: Cluster, group: str) -> str:
    """The group's committed offset, as Apache's tool tells it."""
    reported = apache.tool(
        CONSUMER_GROUPS, "--bootstrap-server", cluster.bootstrap, "--describe", "--group", group
    ).stdout
    return next(line.split()[3] for line in reported.splitlines() if TOPIC in line.split())


def records_of_groups(cluster: Cluster) -> list[tuple[dict[str, Any], Any]]:
    """Key and value of each record in `__consumer_offsets`, decoded by Apache's tool, which must know all of them."""
    folders = cluster.log_directory(1).glob(f"{OFFSETS_TOPIC}-*")
    logs = [log for folder in folders for log in folder.glob("*.log") if log.stat().st_size > 0]
    return [(each.key, each.value) for each in decoded(logs, "--offsets-decoder")]


@pytest.fixture
def node(java: None, libraries: None, tmp_path: Path) -> Iterator[apache.ApacheCluster]:
    """One node of Apache Kafka with a topic of 40 records, running."""
    node = apache.ApacheCluster(tmp_path, nodes=1, properties=PROPERTIES, first_port=free_ports(2), heap="256m")
    node.start()
    try:
        create_topic(node, TOPIC, 1)
        wait_in_sync(node, TOPIC)
        produce(node, TOPIC, enlarged(samples(40)))
        yield node
    finally:
        node.stop()


def test_groups_change_hands_to_us_and_back(node: apache.ApacheCluster) -> None:
    for protocol in PROTOCOLS:
        assert read_and_commit(node, f"group-{protocol}", protocol, 10) == list(range(10))
    node.stop_node(1)

    ours = TanistNode(node.properties_file(1))
    ours.start()
    try:
        wait_in_sync(ours, TOPIC)
        for protocol in PROTOCOLS:
            assert committed(ours, f"group-{protocol}") == "10"
            assert read_and_commit(ours, f"group-{protocol}", protocol, 10) == list(range(10, 20))
        assert read_and_commit(ours, "group-fresh", "classic", 30) == list(range(30))
        assert read_and_commit(ours, "group-regex", "consumer", 30, f"^{TOPIC[:4]}.*") == list(range(30))
        ours.stop_node(1)
    finally:
        ours.stop()

    reported = records_of_groups(node)
    assert {key["type"] for key, _ in reported} == KINDS
    commits = [(key["data"]["group"], value["data"]["offset"]) for key, value in reported if key["type"] == "1"]
    assert sorted(commits) == [
        ("group-classic", 10), ("group-classic", 20), ("group-consumer", 10), ("group-consumer", 20),
        ("group-fresh", 30), ("group-regex", 30),
    ]  # fmt: skip
    # A member that speaks the consumer protocol does not speak the classic one, by either record.
    members = [value["data"] for key, value in reported if key["type"] == "5" and value is not None]
    assert len(members) >= 3
    assert all(each["classicMemberMetadata"] is None for each in members)

    node.start_node(1)
    wait_in_sync(node, TOPIC)
    for protocol in PROTOCOLS:
        assert read_and_commit(node, f"group-{protocol}", protocol, 10) == list(range(20, 30))
    assert read_and_commit(node, "group-fresh", "classic", 10) == list(range(30, 40))
    assert read_and_commit(node, "group-regex", "consumer", 10, f"^{TOPIC[:4]}.*") == list(range(30, 40))
