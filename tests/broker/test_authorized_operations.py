"""What a client may do, as the answers that describe things report it: all that applies, for there is no authorizer.

The numbers are Apache Kafka 4.3.1's without an authorizer; `tests/interop/test_interop_answers.py` compares them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_groups_request import DescribeGroupsRequest
from tanist.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client, groups_cluster

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12
OF_TOPIC = [READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]
OF_GROUP = [READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]
OF_CLUSTER = [CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE]
NOT_ASKED = -(2**31)


def operations(field: int) -> list[int]:
    return [bit for bit in range(31) if field >> bit & 1]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    cluster = groups_cluster()
    cluster.create_topic("t")
    return cluster


@pytest.mark.parametrize("topics", [None, ("t", "no-such-topic", "not a name")])
def test_metadata(cluster: Cluster, topics: tuple[str, ...] | None) -> None:
    wanted = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in topics)

    def ask(version: int, *, of_topics: bool, of_cluster: bool = False) -> tuple[int, set[int]]:
        request = MetadataRequest(
            topics=wanted,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=of_topics,
            include_cluster_authorized_operations=of_cluster,
        )
        answer = cluster.ask(request, version)
        return answer.cluster_authorized_operations, {each.topic_authorized_operations for each in answer.topics}

    assert ask(8, of_topics=False) == (NOT_ASKED, {NOT_ASKED})
    (of_topic,) = ask(12, of_topics=True)[1]
    assert operations(of_topic) == OF_TOPIC
    of_cluster, of_topics = ask(10, of_topics=False, of_cluster=True)
    assert (sorted(operations(of_cluster)), of_topics) == (sorted(OF_CLUSTER), {NOT_ASKED})
    assert ask(8, of_topics=False) == (NOT_ASKED, {NOT_ASKED})


def test_describe_cluster(cluster: Cluster) -> None:
    asked = cluster.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
    assert sorted(operations(asked.cluster_authorized_operations)) == sorted(OF_CLUSTER)
    assert cluster.ask(DescribeClusterRequest(), 1).cluster_authorized_operations == NOT_ASKED


def test_describe_topic_partitions_reports_them_unasked(cluster: Cluster) -> None:
    request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"), TopicRequest(name="no-such-topic")))
    answer = cluster.ask(request, 0)
    assert [operations(each.topic_authorized_operations) for each in answer.topics] == [OF_TOPIC, OF_TOPIC]


def described(client: Client, version: int, *, asked: bool) -> Any:
    request = DescribeGroupsRequest(groups=(client.group,), include_authorized_operations=asked)
    return client.ask(request, version, lambda answer: int(answer.groups[0].error_code)).groups[0]


def consumers_described(client: Client, *, asked: bool) -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=(client.group,), include_authorized_operations=asked)
    return client.ask(request, 1, lambda answer: int(answer.groups[0].error_code)).groups[0]


def test_a_classic_group(cluster: Cluster) -> None:
    client = Client(cluster, "classic")
    client.join()
    group = described(client, 6, asked=True)
    assert (group.error_code, operations(group.authorized_operations)) == (0, OF_GROUP)
    assert described(client, 6, asked=False).authorized_operations == NOT_ASKED


def test_a_consumer_group(cluster: Cluster) -> None:
    client = Client(cluster, "modern")
    beat = ConsumerGroupHeartbeatRequest(
        group_id="modern",
        member_id="a" * 22,
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    assert client.ask(beat, 1, lambda answer: int(answer.error_code)).error_code == 0
    group = consumers_described(client, asked=True)
    assert (group.error_code, operations(group.authorized_operations)) == (0, OF_GROUP)
    assert consumers_described(client, asked=False).authorized_operations == NOT_ASKED
    other = described(client, 6, asked=True)
    assert (other.error_message, other.authorized_operations) == ("Group modern is not a classic group.", NOT_ASKED)


def test_a_group_that_is_not_there(cluster: Cluster) -> None:
    client = Client(cluster, "missing")
    dead = described(client, 5, asked=True)
    assert (dead.error_code, dead.group_state, operations(dead.authorized_operations)) == (0, "Dead", OF_GROUP)
    gone = described(client, 6, asked=True)
    assert (gone.error_message, gone.authorized_operations) == ("Group missing not found.", NOT_ASKED)
    (unnamed,) = cluster.ask(ConsumerGroupDescribeRequest(group_ids=("",)), 1).groups
    assert (unnamed.error_code, unnamed.error_message) == (ErrorCode.INVALID_GROUP_ID, None)


def test_a_coordinator_that_is_found_has_no_error_named_none(cluster: Cluster) -> None:
    for version in (1, 2, 3):
        found = Client(cluster).ask(FindCoordinatorRequest(key="g"), version, lambda answer: int(answer.error_code))
        assert (found.error_code, found.error_message) == (0, "NONE")
    (batched,) = cluster.ask(FindCoordinatorRequest(coordinator_keys=("g",)), 6).coordinators
    assert (batched.error_code, batched.error_message) == (0, "")
