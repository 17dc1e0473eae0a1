"""Groups of real clients: three members share a topic, one leaves, one is killed; then their coordinator is.

Each member is a process of its own. Every record is read, no partition has two owners once a rebalance is over, and
who takes a partition over goes on where its former owner had committed. Other clients' modules take these tests over,
with a `group` of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.groups import Group, Kind, new_group
from tests.interop import apache
from tests.interop.cluster import Cluster, wait_in_sync

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"


def python_kind(library: str) -> Kind:
    return Kind(library, lambda *where: (sys.executable, "-m", "tests.clients.group_member", library, *where))


def java_kind(name: str, *protocol: str, by_parts: bool = False) -> Kind:
    def command(bootstrap: str, group: str, topic: str) -> list[str]:
        return apache.java_command(
            VERIFIABLE_CONSUMER, "--bootstrap-server", bootstrap, "--group-id", group, "--topic", topic,
            *protocol, "--reset-policy", "earliest", "--verbose", flags=apache.TOOL_FLAGS,
        )  # fmt: skip

    return Kind(name, command, by_parts=by_parts)


KINDS = [
    *map(python_kind, ("confluent", "confluent-consumer", "kafka-python", "aiokafka")),
    java_kind("java", "--session-timeout", "6000"),
    java_kind("java-consumer", "--group-protocol", "consumer", by_parts=True),
]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def group(
    request: pytest.FixtureRequest, cluster: Cluster, new_topic_name: Callable[[], str], tmp_path: Path
) -> Iterator[Group]:
    kind: Kind = request.param
    if kind.name.startswith("java"):
        request.getfixturevalue("java")
    with new_group(kind, cluster, new_topic_name(), tmp_path) as members:
        yield members


def test_three_members_share_a_topic_one_leaves_and_one_is_killed(group: Group) -> None:
    for _ in range(3):
        group.add()
    group.wait_until_stable()
    first = group.read_all(group.produce())
    assert set(first.values()) == {1}
    group.members.pop(0).leave()
    group.wait_until_stable()
    second = group.read_all(group.produce())
    assert set(second.values()) == {1}
    group.members.pop(0).kill()
    third = group.read_all(group.produce())
    assert set(third.values()) == {1}
    group.wait_until_stable()


def test_a_group_that_comes_back_goes_on_where_it_was_when_its_coordinator_died(group: Group, cluster: Cluster) -> None:
    from confluent_kafka.admin import AdminClient

    group.add()
    group.wait_until_stable()
    before = group.produce()
    assert set(group.read_all(before).values()) == {1}
    group.members.pop().leave()
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    name = group.name
    described = admin.describe_consumer_groups([name])[name].result(30)
    victim = described.coordinator.id
    cluster.kill_node(victim)
    try:
        group.add()
        assert set(group.read_all(group.produce()).values()) == {1}
        assert set(group.read_all(before).values()) == {1}
    finally:
        cluster.start_node(victim)
        wait_in_sync(cluster, group.topic)
