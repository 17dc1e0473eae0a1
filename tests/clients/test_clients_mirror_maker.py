"""MirrorMaker 2 mirrors one cluster to another, exactly once, while a broker of each is killed and started again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Client
from tanist.runtime.client.groups import commit_offsets, committed_offsets
from tests.clients.exactly_once import SETTLE_S, Committed, application, coordinator, produce, without
from tests.interop import target
from tests.interop.cluster import Cluster, metadata
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries", "java")]

MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"
FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
PARTITIONS = 2
READ_BY_GROUP = 300  # of each partition
RETENTION_MS = "123456789"
SETTINGS = """\
clusters = here, there
here.bootstrap.servers = {here}
there.bootstrap.servers = {there}
replication.factor = 3
here->there.enabled = true
here->there.topics = {topic}
here->there.groups = {group}
there.exactly.once.source.support = enabled
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 1
emit.checkpoints.interval.seconds = 1
refresh.groups.interval.seconds = 1
"""


@pytest.fixture
def other_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers with everything at its default, to mirror to."""
    running = target.make(target.chosen(), tmp_path / "there")
    running.start()
    try:
        yield running
    finally:
        running.stop()


def test_mirror_maker_mirrors_a_topic_and_its_group_over_a_brokers_death_on_both_sides(
    cluster: Cluster,
    other_cluster: Cluster,
    connect_jars: Path,
    new_topic_name: Callable[[], str],
    tmp_path: Path,
) -> None:
    """Each record once, in its partition and in order; a group that moves to the other cluster misses none."""
    from confluent_kafka.admin import AdminClient, NewTopic

    topic, group = "mirrored", f"group-of-{new_topic_name()}"
    mirrored = f"here.{topic}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wanted = NewTopic(topic, PARTITIONS, 3, config={"retention.ms": RETENTION_MS})
    admin.create_topics([wanted])[topic].result(30)
    values = [str(number) for number in range(1000)]
    properties, log = tmp_path / "mm2.properties", tmp_path / "mirror-maker.log"
    properties.write_text(
        SETTINGS.format(here=cluster.bootstrap, there=other_cluster.bootstrap, topic=topic, group=group)
    )
    command = ["java", *FLAGS, "-cp", f"{connect_jars}/*", MIRROR_MAKER, str(properties)]

    produce(cluster, topic, values[:400], partitions=PARTITIONS)
    with application(command, log):
        wait_for(lambda: exists(other_cluster, mirrored), f"{mirrored}, see {log}", timeout_s=SETTLE_S)
        with Committed(other_cluster, mirrored, PARTITIONS) as read:
            read.wait_for(400, log.read_text)
            victim = coordinator(other_cluster, "here-mm2-")
            with without(cluster, cluster.node_ids[0], topic), without(other_cluster, victim, mirrored):
                produce(cluster, topic, values[400:700], partitions=PARTITIONS)
                read.wait_for(700, log.read_text)
            with client(cluster) as here:
                read_by_group = {(topic, index): READ_BY_GROUP for index in range(PARTITIONS)}
                commit_offsets(here, group, read_by_group)
            produce(cluster, topic, values[700:], partitions=PARTITIONS)
            read.wait_for(1000, log.read_text)
            read.wait_for_the_end()
            with client(other_cluster) as there:

                def moved() -> dict[TopicPartition, int] | None:
                    offsets = committed_offsets(there, group)
                    return offsets if len(offsets) == PARTITIONS else None

                positions = wait_for(moved, f"{group} on the other cluster, see {log}", timeout_s=SETTLE_S)
    for index in range(PARTITIONS):
        found = [each for each in read.messages if each.partition() == index]
        assert [each.value().decode() for each in found] == values[index::PARTITIONS]
        next_unread = found[READ_BY_GROUP].offset()
        assert 0 < positions[mirrored, index] <= next_unread
    assert retention_ms(other_cluster, mirrored) == RETENTION_MS
    # It asks for ACLs when it starts and at each interval: an ERROR each time from a cluster that does not answer.
    assert "ACL" not in log.read_text()


def exists(cluster: Cluster, topic: str) -> bool:
    return len(metadata(cluster, cluster.node_ids[0], (topic,)).topics.get(topic, ())) == PARTITIONS


def client(cluster: Cluster) -> Client:
    return Client([cluster.address(node_id) for node_id in cluster.node_ids])


def retention_ms(cluster: Cluster, topic: str) -> str:
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return str(admin.describe_configs([resource])[resource].result(30)["retention.ms"].value)
