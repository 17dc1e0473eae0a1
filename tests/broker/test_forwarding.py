"""Clients' requests on their way to the controller: which are repeated for them, and which answers they never get."""

from __future__ import annotations

import pytest

from tanist.broker.api.table import _BROKER, _FORWARD
from tanist.broker.node import Node
from tanist.client import admin
from tanist.wire.apis import BROKER_APIS, ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.messages import alter_client_quotas_request as quotas_request
from tanist.wire.messages import alter_configs_request, incremental_alter_configs_request, update_features_request
from tanist.wire.messages import alter_user_scram_credentials_request as scram_request
from tanist.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from tanist.wire.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from tanist.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreateTopicsResponse
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from tanist.wire.messages.describe_quorum_request import DescribeQuorumRequest
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tanist.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from tanist.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tanist.wire.messages.unregister_controller_request import UnregisterControllerRequest
from tanist.wire.schema import Array, Request, Struct
from tests.broker.cluster_rig import Cluster


def create(timeout_ms: int = 10_000, name: str = "t") -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=3)
    return CreateTopicsRequest(topics=(topic,), timeout_ms=timeout_ms)


def test_a_refusal_that_the_first_request_has_caused_is_not_passed_on() -> None:
    """The topic is committed, the controller dies before its answer arrives, and its successor knows the topic."""
    cluster = Cluster()
    old = cluster.controller()
    asked = next(node_id for node_id in cluster.world.hosts if node_id != old)
    assert cluster.ask(create(name="before"), 7, to=asked) is not None  # the way to the controller is open
    cluster.block(old, asked)
    answers = cluster.send(create(), 7, to=asked)
    third = next(node_id for node_id in cluster.world.hosts if node_id not in (old, asked))
    cluster.until(lambda: "t" in cluster.node(third).metadata.image.topic_ids)
    cluster.host(old).kill()
    cluster.until(lambda: bool(answers))
    (answer,) = answers
    assert isinstance(answer, CreateTopicsResponse)  # the client knows that it does not know
    assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert answer.topics[0].error_message == "The controller's answer was lost: this may have been done."


def test_a_refusal_of_the_only_request_is_passed_on() -> None:
    cluster = Cluster()
    cluster.create_topic("t")
    answer = cluster.ask(create(), 7)
    assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(("timeout_ms", "heard_ms"), [(1_000, 25_000), (60_000, 65_000)])
def test_the_controller_is_asked_for_as_long_as_the_request_says(timeout_ms: int, heard_ms: int) -> None:
    cluster = Cluster()
    one, others = 1, (2, 3)
    for other in others:
        cluster.host(other).kill()
    cluster.until(lambda: cluster.node(one).quorum.leader_id is None)
    began_ms = cluster.world.now_ms
    answer = cluster.ask(create(timeout_ms), 7, to=one, timeout_ms=100_000)
    assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert answer.topics[0].error_message == "No controller is active: there is no quorum. Nothing was done."
    assert heard_ms - 1_000 <= cluster.world.now_ms - began_ms <= heard_ms + 1_000


FORWARDED: tuple[Request, ...] = (
    create(),
    DeleteTopicsRequest(topic_names=("t",), topics=(DeleteTopicState(name="t"),)),
    CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=2),)),
    ElectLeadersRequest(topic_partitions=(TopicPartitions(topic="t", partitions=(0,)),)),
    AlterPartitionReassignmentsRequest(),
    ListPartitionReassignmentsRequest(topics=None),
    DescribeQuorumRequest(),
    update_features_request.UpdateFeaturesRequest(
        feature_updates=(update_features_request.FeatureUpdateKey(feature="group.version"),)
    ),
    UnregisterBrokerRequest(broker_id=3),
    UnregisterControllerRequest(controller_id=3),
    CreateAclsRequest(creations=(AclCreation(),)),
    DeleteAclsRequest(filters=(DeleteAclsFilter(),)),
    quotas_request.AlterClientQuotasRequest(entries=(quotas_request.EntryData(),)),
    scram_request.AlterUserScramCredentialsRequest(deletions=(scram_request.ScramCredentialDeletion(name="a"),)),
    AddRaftVoterRequest(voter_id=4),
    RemoveRaftVoterRequest(voter_id=3),
    alter_configs_request.AlterConfigsRequest(
        resources=(alter_configs_request.AlterConfigsResource(resource_type=2, resource_name="t"),)
    ),
    incremental_alter_configs_request.IncrementalAlterConfigsRequest(
        resources=(incremental_alter_configs_request.AlterConfigsResource(resource_type=2, resource_name="t"),)
    ),
)


def codes_in(message: Struct) -> set[int]:
    found: set[int] = set()
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name == "error_code":
            found.add(value)
        for each in value or () if isinstance(field.type, Array) else (value,):
            found |= codes_in(each) if isinstance(each, Struct) else set()
    return found


def test_every_request_that_is_passed_on_is_answered_without_a_quorum_in_every_version() -> None:
    """A connection that closes says nothing: clients would look for a broker that answers, and there is none."""
    keys = {request.API_KEY for request in FORWARDED}
    assert keys == {key for key, builder in _BROKER.items() if builder == _FORWARD} | {
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
    }
    cluster = Cluster()
    for other in (2, 3):
        cluster.host(other).kill()
    cluster.until(lambda: cluster.node(1).quorum.leader_id is None)
    sent: dict[tuple[str, int], list[object]] = {}
    for request in FORWARDED:
        low, high = BROKER_APIS[ApiKey(request.API_KEY)]
        for version in range(low, high + 1):
            sent[type(request).__name__, version] = cluster.send(request, version, to=1, timeout_ms=90_000)
    cluster.until(lambda: all(sent.values()), within_ms=100_000)
    answers = {asked: answer for asked, (answer,) in sent.items()}
    closed = [asked for asked, answer in answers.items() if answer is None]
    assert closed == []
    codes = {asked: codes_in(answer) for asked, answer in answers.items() if isinstance(answer, Struct)}
    assert {asked: found for asked, found in codes.items() if ErrorCode.REQUEST_TIMED_OUT not in found} == {}


CHANGES: tuple[tuple[Request, int], ...] = (
    (create(name="new"), 7),
    (DeleteTopicsRequest(topic_names=("t",), timeout_ms=10_000), 5),
    (
        CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name="t", count=2, assignments=None),), timeout_ms=10_000
        ),
        3,
    ),
    (
        admin.alter_configs_request(admin.TOPIC_RESOURCE, "t", {"retention.ms": "1000"}),
        1,
    ),
)


def known(node: Node) -> tuple[object, ...]:
    """What these change, as a node knows it."""
    image = node.metadata.image
    topics = {name: len(image.topics[topic_id].partitions) for name, topic_id in image.topic_ids.items()}
    return topics, dict(image.configs.get((2, "t"), {}))


@pytest.mark.parametrize(("request_", "version"), CHANGES, ids=[type(each).__name__ for each, _ in CHANGES])
def test_a_change_is_answered_when_the_broker_that_was_asked_has_it(
    monkeypatch: pytest.MonkeyPatch, request_: Request, version: int
) -> None:
    """A client asks the broker that has reported a change about it next."""
    cluster = Cluster()
    cluster.create_topic("t")
    asked = next(node_id for node_id in cluster.world.hosts if node_id != cluster.controller())
    node = cluster.node(asked)
    cluster.until(lambda: known(node) == known(cluster.node(cluster.controller())))
    before = known(node)
    with monkeypatch.context() as behind:
        behind.setattr(node.quorum.replay, "_apply_committed", lambda: None)
        answers = cluster.send(request_, version, to=asked)
        cluster.until(lambda: known(cluster.node(cluster.controller())) != before)
        cluster.run(1_000)
        assert (answers, known(node)) == ([], before)
    cluster.until(lambda: bool(answers))
    assert codes_in(answers[0]) == {ErrorCode.NONE}
    assert known(node) == known(cluster.node(cluster.controller())) != before


def test_the_wait_for_a_change_that_is_done_ends_with_the_requests_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    asked = next(node_id for node_id in cluster.world.hosts if node_id != cluster.controller())
    node = cluster.node(asked)
    with monkeypatch.context() as behind:
        behind.setattr(node.quorum.replay, "_apply_committed", lambda: None)
        answer = cluster.ask(create(timeout_ms=2_000), 7, to=asked)
        assert answer.topics[0].error_code == ErrorCode.NONE  # it is done, and says so
        assert "t" not in node.metadata.image.topic_ids
        # What changes nothing waits for nothing: an operator asks how far behind a broker is.
        began_ms = cluster.world.now_ms
        assert cluster.ask(DescribeQuorumRequest(), 2, to=asked).error_code == ErrorCode.NONE
        assert cluster.world.now_ms - began_ms < 1_000
    cluster.until(lambda: "t" in node.metadata.image.topic_ids)
