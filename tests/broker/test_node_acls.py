"""Access control lists on nodes, where records are written and read: what is taken back is denied at once."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.broker.metadata.envelopes import envelope
from tanist.broker.replication.fetch_sessions import LEAST_PARTITIONS
from tanist.events.process import AuthorizationDenied
from tanist.security.principal import Principal
from tanist.security.session import Session
from tanist.sim.world.world import CONTROLLER_PORT
from tanist.wire.acls import AclOperation, ResourceType
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import encode_request
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.envelope_request import EnvelopeRequest
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.acl_rig import SecuredCluster, error_codes
from tests.broker.cluster_rig import Cluster

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
BY_ID = 13


@pytest.fixture
def cluster() -> SecuredCluster:
    return SecuredCluster(nodes=3)


@pytest.fixture
def alone() -> SecuredCluster:
    """One node with a topic of as many partitions as a fetch session needs."""
    cluster = SecuredCluster(nodes=1)
    cluster.create_topic("t", partitions=LEAST_PARTITIONS, factor=1)
    return cluster


def produce(cluster: SecuredCluster, user: str, *topics: str, version: int = 9, acks: int = -1) -> Any:
    """The answer to one batch for partition 0 of each."""
    records = bytes(encode_batch([NewRecord(timestamp=0, key=None, value=b"v")]))
    image = cluster.node(1).metadata.image
    request = ProduceRequest(
        acks=acks,
        timeout_ms=2_000,
        topic_data=tuple(
            TopicProduceData(
                name=name,
                topic_id=image.topic_ids[name],
                partition_data=(PartitionProduceData(index=0, records=records),),
            )
            for name in topics
        ),
    )
    return cluster.ask_as(user, request, version)


def fetch_request(count: int = 1, **how: Any) -> FetchRequest:
    """Of the first partitions of t."""
    parts = tuple(
        FetchPartition(
            partition=index, current_leader_epoch=-1, fetch_offset=0, last_fetched_epoch=-1, partition_max_bytes=1 << 20
        )
        for index in range(count)
    )
    values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, **how}
    return FetchRequest(topics=(FetchTopic(topic="t", partitions=parts),) if count else (), **values)


def test_a_whole_request_is_denied_then_allowed_then_denied(cluster: SecuredCluster) -> None:
    request = JoinGroupRequest(group_id="g", protocol_type="consumer", session_timeout_ms=10_000)
    for version in range(10):
        answer = cluster.ask_as("alice", request, version)
        assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    cluster.allow("alice", (READ, GROUP, "g"))
    assert cluster.ask_as("alice", request, 5).error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert error_codes(cluster.ask_as("bob", request, 5)) == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
    cluster.revoke("alice")
    assert cluster.ask_as("alice", request, 5).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_denial_is_reported_once_a_second_with_the_principal_as_it_is_written(cluster: SecuredCluster) -> None:
    request = JoinGroupRequest(group_id="g", protocol_type="consumer", session_timeout_ms=10_000)
    for _ in range(5):
        cluster.ask_as("alice", request, 5)
    (first,) = cluster.seen(AuthorizationDenied)
    assert first == AuthorizationDenied("User:alice", "alice", "READ", "GROUP", "g", "JOIN_GROUP", 0)
    cluster.run(1_000)
    cluster.ask_as("alice", request, 5)
    assert [each.left_out for each in cluster.seen(AuthorizationDenied)] == [0, 4]


# -- writing


@pytest.mark.parametrize("version", [8, 9, BY_ID])
@pytest.mark.parametrize("acks", [-1, 1])
def test_records_are_written_as_long_as_it_is_allowed(alone: SecuredCluster, version: int, acks: int) -> None:
    def errors() -> set[int]:
        return error_codes(produce(alone, "alice", "t", version=version, acks=acks))

    assert errors() == {DENIED}
    alone.allow("alice", (WRITE, TOPIC, "t"))
    assert errors() == {0}
    assert error_codes(produce(alone, "bob", "t", version=version, acks=acks)) == {DENIED}
    alone.allow("alice", (WRITE, TOPIC, "*"), deny=True)
    assert errors() == {DENIED}
    alone.revoke("alice")
    assert errors() == {DENIED}
    (hosted,) = alone.hosted("t").values()
    assert hosted.log.log_end_offset == 1


def test_a_request_writes_to_the_topics_that_it_may_write_to(alone: SecuredCluster) -> None:
    alone.create_topic("u", factor=1)
    alone.allow("alice", (WRITE, TOPIC, "u"))
    answer = produce(alone, "alice", "t", "u")
    found = {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}
    assert found == {"t": DENIED, "u": 0}


def test_a_producer_that_wants_no_answer_loses_its_connection(alone: SecuredCluster) -> None:
    assert produce(alone, "alice", "t", acks=0) is None


def test_a_topic_that_is_not_there_is_denied_as_any_other(alone: SecuredCluster) -> None:
    records = bytes(encode_batch([NewRecord(timestamp=0, key=None, value=b"v")]))
    data = (TopicProduceData(name="none", partition_data=(PartitionProduceData(index=0, records=records),)),)
    request = ProduceRequest(acks=1, timeout_ms=1_000, topic_data=data)
    assert error_codes(alone.ask_as("alice", request, 9)) == {DENIED}
    assert error_codes(alone.ask_as("admin", request, 9)) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_an_idempotent_producer_needs_any_topic_or_the_cluster(alone: SecuredCluster) -> None:
    def error() -> int:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)
        return int(alone.ask_as("alice", request, 4).error_code)

    assert error() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    alone.allow("alice", (WRITE, TOPIC, "none-of-these+"))
    assert error() == 0
    alone.revoke("alice")
    alone.allow("alice", (AclOperation.IDEMPOTENT_WRITE, CLUSTER, "kafka-cluster"))
    assert error() == 0


# -- reading


@pytest.mark.parametrize("version", [11, 12])
def test_a_consumer_that_asks_the_same_again_is_asked_about_again(alone: SecuredCluster, version: int) -> None:
    alone.allow("alice", (READ, TOPIC, "t"))
    produce(alone, "admin", "t")
    for _ in range(3):
        answer = alone.ask_as("alice", fetch_request(), version)
        assert error_codes(answer) == {0}
        assert answer.responses[0].partitions[0].records
    alone.revoke("alice")
    for _ in range(2):
        answer = alone.ask_as("alice", fetch_request(), version)
        assert error_codes(answer) - {0} == {DENIED}
        assert not answer.responses[0].partitions[0].records


def test_a_fetch_that_waits_is_denied_when_it_is_answered(alone: SecuredCluster) -> None:
    alone.allow("alice", (READ, TOPIC, "t"))
    waiting = fetch_request(max_wait_ms=10_000)
    alone.ask_as("alice", fetch_request(), 12)
    answers = alone.send(waiting, 12, to=1, client=alone.clients["alice"])
    alone.run(1_000)
    assert not answers
    alone.revoke("alice")
    produce(alone, "admin", "t")
    alone.until(lambda: bool(answers))
    assert error_codes(answers[0]) - {0} == {DENIED}


def test_what_a_session_has_is_asked_about_each_time(alone: SecuredCluster) -> None:
    alone.allow("alice", (READ, TOPIC, "t"))
    first = alone.ask_as("alice", fetch_request(LEAST_PARTITIONS, session_epoch=0), 12)
    assert first.session_id
    assert error_codes(first) == {0}
    alone.revoke("alice")
    again = alone.ask_as("alice", fetch_request(0, session_id=first.session_id, session_epoch=1), 12)
    assert [each.error_code for topic in again.responses for each in topic.partitions] == [DENIED] * LEAST_PARTITIONS


def test_nobody_but_a_node_follows(alone: SecuredCluster) -> None:
    alone.allow("alice", (READ, TOPIC, "t"))
    follower = fetch_request(LEAST_PARTITIONS, replica_id=1, session_epoch=0)
    answer = alone.ask_as("alice", follower, 12)
    assert answer.session_id == 0
    assert error_codes(answer) - {0} == {DENIED}
    assert error_codes(alone.ask_as("alice", fetch_request(), 12)) == {0}


def test_a_tool_reads_a_whole_log_only_if_it_may_follow(alone: SecuredCluster) -> None:
    """In Apache Kafka a client that may read the topic can say that it is replica -3."""
    alone.allow("alice", (READ, TOPIC, "t"))
    produce(alone, "admin", "t")
    assert error_codes(alone.ask_as("alice", fetch_request(replica_id=-3), 12)) - {0} == {DENIED}
    assert error_codes(alone.ask_as("alice", fetch_request(), 12)) == {0}
    alone.allow("alice", (AclOperation.CLUSTER_ACTION, CLUSTER, "kafka-cluster"))
    answer = alone.ask_as("alice", fetch_request(replica_id=-3), 12)
    assert error_codes(answer) == {0}
    assert answer.responses[0].partitions[0].records


# -- between nodes


def acls(host: str = "*") -> CreateAclsRequest:
    entry = AclCreation(
        resource_type=TOPIC, resource_name="t", principal="User:bob", host=host, operation=READ, permission_type=3
    )
    return CreateAclsRequest(creations=(entry,))


def test_a_forged_envelope_is_refused_and_its_request_is_not_carried_out(cluster: SecuredCluster) -> None:
    """Only who has CLUSTER_ACTION may speak for others; what is inside is then theirs."""
    inner = encode_request(acls(), 3, 1, "c")[4:]
    active = cluster.controller()
    as_a_node = envelope(inner, Session("PLAINTEXT", "SASL_PLAINTEXT", "10.0.0.1", Principal("User", "node")))
    assert isinstance(as_a_node, EnvelopeRequest)
    answer = cluster.ask_as("alice", as_a_node, 0, to=active, port=CONTROLLER_PORT)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert not cluster.node(active).metadata.image.acls
    direct = cluster.ask_as("alice", acls(), 3, to=active, port=CONTROLLER_PORT)
    assert error_codes(direct) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_each_broker_passes_on_who_asks(cluster: SecuredCluster) -> None:
    for node_id in cluster.world.hosts:
        answer = cluster.ask_as("alice", acls(), 3, to=node_id)
        assert error_codes(answer) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    cluster.allow("alice", (AclOperation.ALTER, CLUSTER, "kafka-cluster"))
    for node_id in cluster.world.hosts:
        assert error_codes(cluster.ask_as("alice", acls(f"10.0.0.{node_id}"), 3, to=node_id)) == {0}


def test_the_lists_outlive_the_controller(cluster: SecuredCluster) -> None:
    cluster.create_topic("t")
    cluster.allow("alice", (DESCRIBE, TOPIC, "t"))
    first = cluster.controller()
    cluster.host(first).kill()
    other = next(node_id for node_id in cluster.world.hosts if node_id != first)
    describe = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    (resource,) = cluster.ask_as("admin", describe, 3, to=other).resources
    assert [entry.principal for entry in resource.acls] == ["User:alice"]
    assert error_codes(cluster.ask_as("bob", describe, 3, to=other)) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    cluster.host(first).start()
    cluster.until(cluster.world.ready)
    (resource,) = cluster.ask_as("admin", describe, 3, to=first).resources
    assert [entry.principal for entry in resource.acls] == ["User:alice"]


def test_a_node_alone_starts_without_super_users_where_everybody_is_allowed_until_there_are_entries() -> None:
    """What comes before the controller knows the entries is to come again, and is not denied."""
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    cluster = Cluster(nodes=1, config=config)
    assert not cluster.seen(AuthorizationDenied)
    cluster.create_topic("t", factor=1)
    entry = AclCreation(
        resource_type=TOPIC, resource_name="t", principal="User:bob", host="*", operation=READ, permission_type=3
    )
    assert error_codes(cluster.ask(CreateAclsRequest(creations=(entry,)), 3)) == {0}
    assert cluster.produce("t", [b"v"]).error_code == DENIED
