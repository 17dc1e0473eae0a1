"""Offsets of partitions that are not there: refused one by one, and forgotten with their topic."""

from __future__ import annotations

from uuid import UUID

import pytest

from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tanist.wire.messages.offset_commit_request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client, groups_cluster
from tests.broker.transactions_rig import TransactionalProducer

OTHER_ID = UUID(int=77)


@pytest.fixture
def cluster() -> Cluster:
    cluster = groups_cluster(nodes=1, partitions=1, config={"transaction.state.log.num.partitions": "1"})
    cluster.create_topic("t", factor=1)
    return cluster


@pytest.mark.parametrize("version", [8, 9, 10])
def test_a_commit_for_a_partition_that_is_not_there_is_refused_and_the_others_are_taken(
    cluster: Cluster, version: int
) -> None:
    client = Client(cluster)
    topic_id = cluster.node(1).metadata.image.topic_ids["t"]
    request = client.commit_request(5)
    places = tuple(OffsetCommitRequestPartition(partition_index=index, committed_offset=5) for index in (0, 1, 9, -1))
    request.topics = (OffsetCommitRequestTopic(name="t", topic_id=topic_id, partitions=places),)
    answer = client.ask(request, version, lambda answer: int(answer.topics[0].partitions[0].error_code))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in answer.topics[0].partitions] == [0, unknown, unknown, unknown]
    shard = next(cluster.node(1).components.groups.coordinator().partitions()).shard
    assert shard.committed("g").keys() == {("t", 0)}


def test_a_commit_within_a_transaction_for_a_partition_that_is_not_there_is_refused(cluster: Cluster) -> None:
    producer = TransactionalProducer(cluster)
    producer.begin()
    producer.add_offsets("g")
    producer.commit_offsets("g", {("t", 0): 5})
    assert producer.commit_offsets("g", {("t", 0): 6, ("t", 7): 5, ("absent", 0): 5}) == {
        ("t", 0): 0,
        ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("absent", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    producer.end()
    shard = next(cluster.node(1).components.groups.coordinator().partitions()).shard
    cluster.until(lambda: {place: each.offset for place, each in shard.committed("g").items()} == {("t", 0): 6})


def test_an_offset_of_an_open_transaction_goes_with_its_topic(cluster: Cluster) -> None:
    """Else the end of the transaction would commit it for the topic that is made anew under the name."""
    client = Client(cluster)
    client.coordinator()
    producer = TransactionalProducer(cluster)
    producer.begin()
    producer.add_offsets("g")
    producer.commit_offsets("g", {("t", 0): 50})
    cluster.delete_topic("t")
    cluster.create_topic("t", factor=1)
    producer.end()
    assert client.committed() == -1


def test_a_coordinator_that_loads_forgets_offsets_of_another_topic_of_the_name_and_of_partitions_that_are_not_there(
    cluster: Cluster,
) -> None:
    """Written before partitions were looked at, or left behind while the partition had no leader."""
    client = Client(cluster)
    client.commit(5)
    coordinator = cluster.node(1).components.groups.coordinator()
    hosted = cluster.hosted(OFFSETS_TOPIC, 0)[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(coordinator._topics), "find", lambda self, name: (OTHER_ID, 99))
        request = client.commit_request(7)
        request.topics[0].partitions[0].partition_index = 9
        client.ask(request, 8, lambda answer: int(answer.topics[0].partitions[0].error_code))
        other = Client(cluster, "other")
        other.commit(8)
    leader, hosted.leader = hosted.leader, None
    coordinator.role_changed(hosted)
    hosted.leader = leader
    coordinator.role_changed(hosted)
    assert client.committed() == 5
    assert other.committed() == -1
    shard = next(coordinator.partitions()).shard
    cluster.until(lambda: shard.committed("g").keys() == {("t", 0)} and not shard.committed("other"))
