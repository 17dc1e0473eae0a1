"""What clients hear of topics, groups and transactions that they may not describe: nothing, or that they may not."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.broker.api.authorized_operations import NOT_ASKED
from tanist.controller.features import SHARE_VERSION
from tanist.events.process import AuthorizationDenied
from tanist.wire.acls import SUPPORTED_OPERATIONS, AclOperation, ResourceType
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tanist.wire.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from tanist.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_groups_request import DescribeGroupsRequest
from tanist.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.list_transactions_request import ListTransactionsRequest
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tanist.wire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from tanist.wire.schema import ZERO_UUID
from tests.broker.acl_rig import SecuredCluster, error_codes
from tests.broker.test_node_requirements import ALONE, eventually

READ, DESCRIBE, CREATE, DELETE = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.CREATE, AclOperation.DELETE
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
THE_CLUSTER = "kafka-cluster"
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture
def cluster() -> SecuredCluster:
    cluster = SecuredCluster(nodes=1, config=ALONE)
    for name in ("red", "green", "blue"):
        cluster.create_topic(name, factor=1)
    return cluster


def bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


def names_of(answer: Any) -> list[str]:
    return [topic.name for topic in answer.topics]


# -- Metadata


@pytest.mark.parametrize("version", range(14))
def test_each_sees_the_topics_that_it_may_describe_and_no_other(cluster: SecuredCluster, version: int) -> None:
    """Encoded answers are kept for those who ask the same, and are nobody else's."""
    cluster.allow("alice", (READ, TOPIC, "red"))
    cluster.allow("bob", (DESCRIBE, TOPIC, "g+"))
    everything = MetadataRequest(topics=None if version else ())
    seen = {}
    for _ in range(2):
        for user in ("admin", "alice", "bob"):
            seen[user] = names_of(cluster.ask_as(user, everything, version))
        assert seen == {"admin": ["blue", "green", "red"], "alice": ["red"], "bob": ["green"]}
    cluster.revoke("alice")
    assert names_of(cluster.ask_as("alice", everything, version)) == []
    assert not cluster.seen(AuthorizationDenied)


@pytest.mark.parametrize("version", range(14))
def test_a_named_topic_is_denied_whether_it_is_there_or_not(cluster: SecuredCluster, version: int) -> None:
    cluster.allow("alice", (DESCRIBE, TOPIC, "red"))
    request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in ("red", "blue", "none")))
    answer = cluster.ask_as("alice", request, version)
    red, blue, none = answer.topics
    assert red.error_code == 0
    for each in (blue, none):
        assert (each.error_code, each.topic_id, each.is_internal, each.partitions) == (DENIED, ZERO_UUID, False, ())
    assert "none" not in cluster.node(1).metadata.image.topic_ids


@pytest.mark.parametrize("version", [12, 13])
def test_an_id_is_denied_without_the_name_of_its_topic(cluster: SecuredCluster, version: int) -> None:
    known = cluster.node(1).metadata.image.topic_ids["red"]
    unknown = type(known)(int=77)
    request = MetadataRequest(topics=tuple(MetadataRequestTopic(topic_id=each, name=None) for each in (known, unknown)))
    red, none = cluster.ask_as("alice", request, version).topics
    assert (red.error_code, red.name, red.topic_id, red.partitions) == (DENIED, None, known, ())
    assert (none.error_code, none.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


@pytest.mark.parametrize("way", [(CREATE, TOPIC, "new"), (CREATE, CLUSTER, THE_CLUSTER)])
def test_a_topic_is_created_by_who_may_describe_and_create_it(
    cluster: SecuredCluster, way: tuple[AclOperation, ResourceType, str]
) -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="new"),), allow_auto_topic_creation=True)
    assert error_codes(cluster.ask_as("alice", request, 9)) - {0} == {DENIED}
    cluster.allow("alice", (DESCRIBE, TOPIC, "new"))
    (topic,) = cluster.ask_as("alice", request, 9).topics
    assert (topic.error_code, topic.topic_id) == (DENIED, ZERO_UUID)
    assert "new" not in cluster.node(1).metadata.image.topic_ids
    cluster.allow("alice", way)
    cluster.ask_as("alice", request, 9)
    assert "new" in cluster.node(1).metadata.image.topic_ids


def test_operations_are_those_that_are_allowed(cluster: SecuredCluster) -> None:
    def asked(user: str) -> tuple[int, int]:
        request = MetadataRequest(
            topics=(MetadataRequestTopic(name="red"),),
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        )
        answer = cluster.ask_as(user, request, 9)
        return answer.cluster_authorized_operations, answer.topics[0].topic_authorized_operations

    assert asked("admin") == (bits(*SUPPORTED_OPERATIONS[CLUSTER]), bits(*SUPPORTED_OPERATIONS[TOPIC]))
    cluster.allow("alice", (READ, TOPIC, "red"), (CREATE, CLUSTER, THE_CLUSTER))
    assert asked("alice") == (0, bits(READ, DESCRIBE))  # without DESCRIBE on the cluster
    cluster.allow("alice", (DESCRIBE, CLUSTER, THE_CLUSTER))
    cluster.allow("alice", (DESCRIBE, TOPIC, "r+"), deny=True)
    assert asked("alice") == (bits(CREATE, DESCRIBE), NOT_ASKED)
    described = cluster.ask_as("alice", DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
    assert described.cluster_authorized_operations == bits(CREATE, DESCRIBE)
    nothing = cluster.ask_as("bob", DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
    assert nothing.cluster_authorized_operations == 0
    assert nothing.error_code == 0


def test_pages_of_topics_have_those_that_may_be_described(cluster: SecuredCluster) -> None:
    cluster.allow("alice", (DESCRIBE, TOPIC, "red"))
    everything = cluster.ask_as("alice", DescribeTopicPartitionsRequest(response_partition_limit=10), 0)
    assert names_of(everything) == ["red"]
    assert everything.topics[0].topic_authorized_operations == bits(DESCRIBE)
    named = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in ("blue", "none", "red")), response_partition_limit=1
    )
    answer = cluster.ask_as("alice", named, 0)
    assert [(each.name, each.error_code, each.topic_id == ZERO_UUID) for each in answer.topics] == [
        ("red", 0, False),
        ("blue", DENIED, True),
        ("none", DENIED, True),
    ]


# -- topics to create and to delete


def test_the_configuration_of_a_new_topic_is_shown_to_who_may_describe_it(cluster: SecuredCluster) -> None:
    def create(name: str) -> Any:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        return cluster.ask_as("alice", CreateTopicsRequest(topics=(topic,), timeout_ms=1_000), 7).topics[0]

    denied = create("new0")
    assert (denied.error_code, denied.error_message) == (DENIED, "Authorization failed.")  # Apache Kafka's words
    cluster.allow("alice", (CREATE, TOPIC, "new+"))
    hidden = create("new1")
    assert (hidden.error_code, hidden.topic_config_error_code) == (0, DENIED)
    assert (hidden.num_partitions, hidden.replication_factor, hidden.configs) == (-1, -1, ())
    cluster.allow("alice", (AclOperation.DESCRIBE_CONFIGS, TOPIC, "new+"))
    shown = create("new2")
    assert (shown.num_partitions, shown.topic_config_error_code) == (1, 0)
    assert shown.configs


def deleted(cluster: SecuredCluster, *topics: str, by_id: bool = False) -> list[tuple[str | None, int]]:
    ids = cluster.node(1).metadata.image.topic_ids
    states = tuple(
        DeleteTopicState(topic_id=ids[name]) if by_id and name in ids else DeleteTopicState(name=name)
        for name in topics
    )
    answer = cluster.ask_as("alice", DeleteTopicsRequest(topics=states, timeout_ms=1_000), 6)
    return [(each.name, each.error_code) for each in answer.responses]


def test_a_topic_is_deleted_by_who_may_delete_it(cluster: SecuredCluster) -> None:
    assert deleted(cluster, "red", "none") == [("red", DENIED), ("none", DENIED)]
    assert deleted(cluster, "red", by_id=True) == [(None, DENIED)]
    cluster.allow("alice", (DESCRIBE, TOPIC, "*"))
    assert deleted(cluster, "red") == [("red", DENIED)]
    assert deleted(cluster, "none") == [("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert deleted(cluster, "red", by_id=True) == [("red", DENIED)]
    assert set(cluster.node(1).metadata.image.topic_ids) == {"red", "green", "blue"}
    cluster.allow("alice", (DELETE, TOPIC, "red"), (DELETE, TOPIC, "green"))
    assert deleted(cluster, "red", "blue") == [("red", 0), ("blue", DENIED)]
    assert deleted(cluster, "green", by_id=True) == [("green", 0)]
    cluster.revoke("alice")
    cluster.allow("alice", (DELETE, CLUSTER, THE_CLUSTER))
    assert deleted(cluster, "blue") == [("blue", 0)]


# -- groups and transactions


def join(cluster: SecuredCluster, user: str, group: str, **how: Any) -> Any:
    values = {"rebalance_timeout_ms": 10_000, "topic_partitions": (), **how}
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=f"{user}-1", **values)
    return cluster.ask_as(user, request, 1)


@pytest.fixture
def groups(cluster: SecuredCluster) -> SecuredCluster:
    """A group of each of alice and admin, that read red and blue."""
    eventually(cluster, FindCoordinatorRequest(key="of-admin", key_type=0))
    eventually(cluster, DescribeGroupsRequest(groups=("of-admin",)))
    assert join(cluster, "admin", "of-admin", subscribed_topic_names=("blue",)).error_code == 0
    cluster.allow("alice", (READ, GROUP, "of-alice"), (READ, TOPIC, "red"))
    assert join(cluster, "alice", "of-alice", subscribed_topic_names=("red",)).error_code == 0
    return cluster


def test_groups_are_listed_to_who_may_describe_them(groups: SecuredCluster) -> None:
    def listed(user: str) -> set[str]:
        return {group.group_id for group in groups.ask_as(user, ListGroupsRequest(), 4).groups}

    assert listed("admin") == {"of-admin", "of-alice"}
    assert listed("alice") == {"of-alice"}
    assert listed("bob") == set()
    groups.allow("bob", (DESCRIBE, CLUSTER, THE_CLUSTER))
    assert listed("bob") == {"of-admin", "of-alice"}
    assert not groups.seen(AuthorizationDenied)


def test_a_group_is_described_to_who_may_describe_its_topics_too(groups: SecuredCluster) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=("of-admin",), include_authorized_operations=True)
    groups.allow("alice", (DESCRIBE, GROUP, "of-admin"))
    (hidden,) = groups.ask_as("alice", request, 1).groups
    assert (hidden.error_code, hidden.members) == (DENIED, ())
    groups.allow("alice", (DESCRIBE, TOPIC, "blue"))
    (shown,) = groups.ask_as("alice", request, 1).groups
    assert (shown.error_code, len(shown.members)) == (0, 1)
    assert shown.authorized_operations == bits(DESCRIBE)


def test_a_denied_topic_of_a_transaction_does_not_hide_one_that_is_not_there(cluster: SecuredCluster) -> None:
    cluster.allow(
        "alice", (AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx"), (AclOperation.WRITE, TOPIC, "none")
    )
    cluster.allow("alice", (AclOperation.WRITE, TOPIC, "blue"))
    names = ("red", "none", "blue")
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_topics=tuple(AddPartitionsToTxnTopic(name=each, partitions=(0,)) for each in names),
    )
    answer = cluster.ask_as("alice", request, 3)
    found = [each.results_by_partition[0].partition_error_code for each in answer.results_by_topic_v3_and_below]
    assert found == [DENIED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED]


def test_what_is_wrong_with_a_group_comes_before_its_denied_topics() -> None:
    groups = SecuredCluster(nodes=1, config=ALONE, features={SHARE_VERSION: 1})
    groups.create_topic("blue", factor=1)
    eventually(groups, FindCoordinatorRequest(key="of-admin", key_type=0))
    eventually(groups, DescribeGroupsRequest(groups=("of-admin",)))
    assert join(groups, "admin", "of-admin", subscribed_topic_names=("blue",)).error_code == 0
    place = AlterShareGroupOffsetsRequestPartition(partition_index=0)
    topics = (AlterShareGroupOffsetsRequestTopic(topic_name="blue", partitions=(place,)),)
    groups.allow("alice", (READ, GROUP, "of-admin"), (READ, GROUP, "new"))
    wrong = groups.ask_as("alice", AlterShareGroupOffsetsRequest(group_id="of-admin", topics=topics), 0)
    assert (wrong.error_code, wrong.responses) == (ErrorCode.GROUP_ID_NOT_FOUND, ())
    denied = groups.ask_as("alice", AlterShareGroupOffsetsRequest(group_id="new", topics=topics), 0)
    assert (denied.error_code, denied.responses[0].partitions[0].error_code) == (0, DENIED)


def test_one_denied_topic_refuses_the_heartbeat(groups: SecuredCluster) -> None:
    answer = join(groups, "alice", "of-alice", subscribed_topic_names=("red", "blue"))
    assert answer.error_code == DENIED


def test_an_expression_matches_what_may_be_described(groups: SecuredCluster) -> None:
    groups.allow("alice", (READ, GROUP, "by-regex"), (DESCRIBE, TOPIC, "green"))
    answer = join(groups, "alice", "by-regex", subscribed_topic_regex=".*e.*")
    assert answer.error_code == 0
    image = groups.node(1).metadata.image
    assigned = {image.topics[each.topic_id].name for each in answer.assignment.topic_partitions}
    assert assigned == {"red", "green"}
    groups.allow("alice", (DESCRIBE, TOPIC, "blue"))
    answer = join(groups, "alice", "by-regex", subscribed_topic_regex=".*e.*", member_epoch=answer.member_epoch)
    assert {image.topics[each.topic_id].name for each in answer.assignment.topic_partitions} >= {"blue"}


def test_all_offsets_of_a_group_are_those_of_topics_that_may_be_described(groups: SecuredCluster) -> None:
    commit = OffsetCommitRequest(
        group_id="free",
        topics=tuple(
            OffsetCommitRequestTopic(
                name=name, partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=7),)
            )
            for name in ("red", "blue")
        ),
    )
    assert error_codes(groups.ask(commit, 9)) == {0}
    groups.allow("alice", (DESCRIBE, GROUP, "free"))
    old = OffsetFetchRequest(group_id="free", topics=None)
    assert [topic.name for topic in groups.ask_as("alice", old, 7).topics] == ["red"]
    new = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="free", member_epoch=-1, topics=None),))
    for version in (8, 9):
        (group,) = groups.ask_as("alice", new, version).groups
        assert [(topic.name, topic.partitions[0].committed_offset) for topic in group.topics] == [("red", 7)]


def test_transactions_are_listed_to_who_may_describe_them(cluster: SecuredCluster) -> None:
    eventually(cluster, FindCoordinatorRequest(key="x", key_type=1))
    eventually(cluster, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1_000))

    def listed(user: str) -> list[str]:
        answer = cluster.ask_as(user, ListTransactionsRequest(duration_filter=-1), 1)
        return [each.transactional_id for each in answer.transaction_states]

    assert listed("admin") == ["x"]
    assert listed("alice") == []
    cluster.allow("alice", (DESCRIBE, ResourceType.TRANSACTIONAL_ID, "x"))
    assert listed("alice") == ["x"]
